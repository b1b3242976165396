// A document as a file: its content, its name, and whether it counts.
//
// The name is `<hash of the key>.<fence>-<position>`, with `-deleted` at the end for a tombstone. No other process
// creates that name, so a file is written in place: a torn one lies beyond every checkpoint.
//
// A document counts if its position is not beyond the last checkpoint under its fence, so one checkpoint makes a
// whole batch visible at once. A document that a process writes after it lost its lease never counts, even if the
// document was deleted since and no newer file overrides it.
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import { itemsOf, type Items } from "../model/query.ts";
import { sha256Of } from "../../format/checksum.ts";

/** A query of `related`, and the position up to which the document has applied its events. */
export interface SeenQuery {
  readonly items: Items;
  readonly upTo: number;
}

export interface Document {
  readonly key: string;
  /** Position of the last event that touched it. */
  readonly position: number;
  /** Absent in a tombstone. */
  readonly state?: unknown;
  readonly tags: readonly string[];
  readonly seen: readonly SeenQuery[];
}

export interface DocumentName {
  readonly hash: string;
  readonly fence: number;
  readonly position: number;
  /** True for a tombstone, which is kept until the files that it overrides are gone. */
  readonly isDeletion: boolean;
}

const hashLength = 32;
const digits = 16;
const namePattern = /^([0-9a-f]{32})\.([0-9]{16})-([0-9]{16})(-deleted)?$/;

export function hashOf(key: string): string {
  return sha256Of(key).slice(0, hashLength);
}

/** The directory of a document. Sharded, because a directory with a million names is slow to list. */
export function shardOf(hash: string): string {
  return hash.slice(0, 2);
}

export function isShard(name: string): boolean {
  return /^[0-9a-f]{2}$/.test(name);
}

export function documentName({ hash, fence, position, isDeletion }: DocumentName): string {
  const [first, second] = [fence, position].map((number) => String(number).padStart(digits, "0"));
  return `${hash}.${first}-${second}${isDeletion ? "-deleted" : ""}`;
}

/** Returns undefined for a foreign file. */
export function findDocumentName(name: string): DocumentName | undefined {
  const [, hash, fence, position, deletion] = namePattern.exec(name) ?? [];
  if (hash === undefined) return undefined;
  return { hash, fence: Number(fence), position: Number(position), isDeletion: deletion !== undefined };
}

export function isCommitted({ fence, position }: DocumentName, checkpoint: Checkpoint): boolean {
  const cut = checkpoint.cutOff.find(([each]) => each === fence);
  return position <= (cut?.[1] ?? checkpoint.position);
}

export function isNewer(one: DocumentName, other: DocumentName): boolean {
  return one.fence > other.fence || (one.fence === other.fence && one.position > other.position);
}

/** Returns the newest name that counts, by hash. */
export function newestOf(names: readonly DocumentName[], checkpoint: Checkpoint): Map<string, DocumentName> {
  const newest = new Map<string, DocumentName>();
  for (const name of names) {
    if (!isCommitted(name, checkpoint)) continue;
    const other = newest.get(name.hash);
    if (other === undefined || isNewer(name, other)) newest.set(name.hash, name);
  }
  return newest;
}

export const documentKind: RecordKind<Document> = {
  kind: "document",
  decode: (value) => {
    const { key, position, state, tags, seen } = objectOf(value);
    return {
      key: textOf(key),
      position: countOf(position),
      ...(state === undefined ? {} : { state }),
      tags: listOf(tags, textOf),
      seen: listOf(seen, (each) => {
        const { items, upTo } = objectOf(each);
        return { items: itemsOf(listOf(items, (item) => objectOf(item))), upTo: countOf(upTo) };
      }),
    };
  },
};
