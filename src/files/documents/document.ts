// A document: the text that a worker extracted from one file, for the engines of all processes.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

/** Only the beginning of a longer text is indexed. */
export const textLengthMax: number = 2 * 1024 * 1024;
/** At most six bytes per character, and a vector. */
export const documentBytesMax: number = 16 * 1024 * 1024;

export interface Document {
  readonly path: string;
  /** The change that it was extracted for. */
  readonly change: number;
  /** Stamp of the content from which it was extracted. */
  readonly stamp: string;
  /** Absent: the file is not indexed. */
  readonly text?: string;
  readonly vector?: readonly number[];
}

interface DocumentRecord extends Document {
  /** Id of its publication: after a lost reply it shows whose document has the name. */
  readonly id: string;
}

export const documentKind: RecordKind<DocumentRecord> = {
  kind: "document",
  decode: (value) => {
    const { id, path, change, stamp, text, vector } = objectOf(value);
    return {
      id: textOf(id),
      path: textOf(path),
      change: countOf(change),
      stamp: textOf(stamp),
      ...(text === undefined ? {} : { text: textOf(text) }),
      ...(vector === undefined ? {} : { vector: listOf(vector, numberOf) }),
    };
  },
};

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw new TypeError("not a number");
  return value;
}
