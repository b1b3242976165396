// A document: what a worker extracted from one file, for the engines of all processes.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";

/** Of a longer text the beginning is indexed. */
export const textLengthMax: number = 2 * 1024 * 1024;
/** Six bytes for each character at most, and a vector. */
export const documentBytesMax: number = 16 * 1024 * 1024;

export interface Document {
  readonly path: string;
  /** The change that it was extracted for. */
  readonly change: number;
  /** Of the content that it was extracted from. */
  readonly stamp: string;
  /** Absent: the file is not indexed. */
  readonly text?: string;
  readonly vector?: readonly number[];
}

interface DocumentRecord extends Document {
  /** Of its publication: after a lost reply it tells whose document has the name. */
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
