// The records of a target: what it is, the backups that are complete, and those that are not.
import { isHoldfastError, holdfastError } from "../errors.ts";
import { countOf, flagOf, listOf, objectOf, textOf } from "../format/decoding.ts";
import { idTimeMs, isId } from "../format/id.ts";
import { decodeRecord, type RecordKind } from "../format/record.ts";
import { blobOf, decodeEntry, type Entry } from "./model.ts";
import type { BackupTarget } from "./target/target.ts";

/** `holdfast-backup.json`: the store whose backups a target has. */
export const targetRecord = "holdfast-backup.json";
export const targetKind: RecordKind<{ readonly store: string }> = {
  kind: "backup target",
  decode: (value) => ({ store: textOf(objectOf(value).store) }),
};

/** A backup, or the beginning of one. */
export interface Manifest {
  readonly id: string;
  readonly store: string;
  /** When it began, by the clock of its machine. Every write that was acknowledged before that is in it. */
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
  /** The blobs with its entries, one entry a line. */
  readonly index: readonly string[];
  readonly files: number;
  readonly bytes: number;
  /** Bytes that it added to the target, its own records included. */
  readonly added: number;
  readonly isComplete: boolean;
  /** What could not be copied. */
  readonly problems: readonly string[];
}

export const manifestKind: RecordKind<Manifest> = {
  kind: "backup",
  decode: (value) => {
    const fields = objectOf(value);
    return {
      id: textOf(fields.id),
      store: textOf(fields.store),
      startedAtMs: countOf(fields.startedAtMs),
      finishedAtMs: countOf(fields.finishedAtMs),
      index: listOf(fields.index, blobOf),
      files: countOf(fields.files),
      bytes: countOf(fields.bytes),
      added: countOf(fields.added),
      isComplete: flagOf(fields.isComplete),
      problems: listOf(fields.problems, textOf),
    };
  },
};

/** A backup that has not advanced for this long counts as abandoned. If it continues after all, it fails at its end. */
export const abandonedMs = 3_600_000;

export const completeFolder = "backups/";
export const unfinishedFolder = "unfinished/";
export const pruningFolder = "pruning/";
/** Has a file for each mark that was removed from `unfinished/` or `pruning/` because its process seemed to be gone. */
export const abandonedFolder = "abandoned/";
export const blobFolder = "blobs/";

export function manifestName(folder: string, id: string): string {
  return `${folder}${id}.json`;
}

/** Throws NOT_A_STORE if no backup was ever begun there, as on a share that is not mounted. */
export async function mustBeTarget(target: BackupTarget): Promise<void> {
  if ((await target.find(targetRecord)) !== undefined) return;
  const message = `There are no backups in ${target.shown}: is it the right location, and is the share mounted?`;
  throw holdfastError("NOT_A_STORE", message, { path: target.shown });
}

/** Two hundred and fifty-six folders keep each of them short. */
export function blobName(blob: string): string {
  return `${blobFolder}${blob.slice(0, 2)}/${blob}`;
}

/** Returns the name of the blob in this file; undefined for a foreign file. */
export function findBlobIn(name: string): string | undefined {
  const blob = name.slice(name.lastIndexOf("/") + 1);
  return /^[0-9a-f]{64}$/.test(blob) && blobName(blob) === name ? blob : undefined;
}

/** Returns undefined if there is no such backup. Throws CORRUPT and NEWER_FORMAT. */
export async function findManifest(target: BackupTarget, folder: string, id: string): Promise<Manifest | undefined> {
  const name = manifestName(folder, id);
  const bytes = await target.find(name);
  return bytes && decodeRecord(manifestKind, bytes, `${target.shown}/${name}`);
}

/** Returns the ids in a folder, oldest first. */
export async function listIds(target: BackupTarget, folder: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { name } of target.list(folder)) {
    const id = name.slice(folder.length).replace(/\.json$/, "");
    if (isId(id) && manifestName(folder, id) === name) ids.push(id);
  }
  return ids.sort((one, other) => idTimeMs(one) - idTimeMs(other) || (one < other ? -1 : 1));
}

/** Reads a blob. Throws CORRUPT if it is missing, or is not what its name says. */
export async function readBlob(
  target: BackupTarget,
  blob: string,
  digest: (bytes: Uint8Array) => string,
): Promise<Uint8Array> {
  const path = `${target.shown}/${blobName(blob)}`;
  const bytes = await target.find(blobName(blob));
  if (bytes !== undefined && digest(bytes) === blob) return bytes;
  const what = bytes === undefined ? "is missing" : "is damaged";
  const message = `${path} ${what}, so backups that need it cannot be restored. \`holdfast backups TARGET --verify\` names them; \`holdfast backup STORE TARGET --full\` makes one that does not need it.`;
  throw holdfastError("CORRUPT", message, { path });
}

/** Yields the entries of a backup. Throws CORRUPT. */
export async function* entriesOf(
  target: BackupTarget,
  { index }: Pick<Manifest, "index">,
  digest: (bytes: Uint8Array) => string,
): AsyncGenerator<Entry> {
  for (const blob of index) {
    const text = Buffer.from(await readBlob(target, blob, digest)).toString("utf8");
    const where = `${target.shown}/${blobName(blob)}`;
    for (const line of text.split("\n")) if (line !== "") yield decodeEntry(line, where);
  }
}

/** True if this concerns one backup and not the target. */
export function isDamage(error: unknown): boolean {
  return isHoldfastError(error, "CORRUPT", "NEWER_FORMAT");
}
