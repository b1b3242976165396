// A change as the change log records it. Its number is its file name.
import { countOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Change, ChangedBy } from "../model/file-tree.ts";

/** A change as an operation announces it before the commit. Paths are spelled as on the disk. */
export type NewChange = Omit<Change, "number" | "by" | "at">;

/** Who announces a change, and when. For people: Holdfast decides nothing by it. */
export interface ChangeAuthor {
  readonly by: ChangedBy;
  /** By the clock of that process, as an ISO string. */
  readonly at: string;
}

/** Records of earlier builds have no signature. */
interface ChangeRecord extends NewChange, Partial<ChangeAuthor> {
  /** Id of the append. After a lost reply it shows whose record has the number. */
  readonly id: string;
}

const kinds: readonly Change["kind"][] = ["written", "removed", "moved"];

/** Converts a record to the change that programs get. */
export function changeOf(number: number, { id: _id, at, ...change }: ChangeRecord): Change {
  const atMs = at === undefined ? NaN : Date.parse(at);
  return { number, ...change, ...(Number.isNaN(atMs) ? {} : { at: new Date(atMs) }) };
}

/** Returns the fields that identify a change. They are the same in older and newer builds. */
export function markedFieldsOf({ number, kind, path, from }: Change): string {
  return JSON.stringify({ number, kind, path, from });
}

export const changeKind: RecordKind<ChangeRecord> = {
  kind: "change",
  decode: (value) => {
    const { id, kind, path, from, by, at, damaged } = objectOf(value);
    return {
      id: textOf(id),
      kind: wordOf(kind, kinds),
      path: textOf(path),
      ...(from === undefined ? {} : { from: textOf(from) }),
      ...(by === undefined ? {} : { by: changedByOf(by) }),
      ...(at === undefined ? {} : { at: textOf(at) }),
      ...(damaged === undefined ? {} : { damaged: textOf(damaged) }),
    };
  },
};

function changedByOf(value: unknown): ChangedBy {
  const { id, name, host, pid } = objectOf(value);
  return {
    id: textOf(id),
    ...(name === undefined ? {} : { name: textOf(name) }),
    host: textOf(host),
    pid: countOf(pid),
  };
}

/** Returns the change that replaces one whose record cannot be read. */
export function damagedChange(why: string): NewChange {
  return { kind: "written", path: "", damaged: why };
}
