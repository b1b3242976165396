// A change as the change log records it. Its number is its name.
import { objectOf, textOf, wordOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Change } from "../model/file-tree.ts";

/** What an operation announces, before it commits it. Paths are spelled as on the disk. */
export type NewChange = Omit<Change, "number">;

interface ChangeRecord extends NewChange {
  /** Of the append: after a lost reply it tells whose record has the number. */
  readonly id: string;
}

const kinds: readonly Change["kind"][] = ["written", "removed", "moved"];

export const changeKind: RecordKind<ChangeRecord> = {
  kind: "change",
  decode: (value) => {
    const { id, kind, path, from } = objectOf(value);
    const change = { id: textOf(id), kind: wordOf(kind, kinds), path: textOf(path) };
    return from === undefined ? change : { ...change, from: textOf(from) };
  },
};
