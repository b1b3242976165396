// The frame of an export. A record before the lines states how far they go, and a record after them proves that the
// export is not truncated.
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../format/record.ts";

export interface ExportStart {
  /** The id of the exported log. */
  readonly log: string;
  /** Position of the last event. */
  readonly position: number;
}

export interface ExportEnd {
  readonly lines: number;
  readonly position: number;
  /** Checksum of the last line: eight hex digits. */
  readonly last: string;
}

const startKind: RecordKind<ExportStart> = {
  kind: "event export",
  decode: (value) => {
    const { log, position } = objectOf(value);
    return { log: textOf(log), position: countOf(position) };
  },
};

const endKind: RecordKind<ExportEnd> = {
  kind: "event export end",
  decode: (value) => {
    const { lines, position, last } = objectOf(value);
    return { lines: countOf(lines), position: countOf(position), last: textOf(last) };
  },
};

export interface EncodedRecord {
  readonly text: string;
  /** The seed of the checksum of the first line. */
  readonly crc: number;
}

export function encodeStart(start: ExportStart): EncodedRecord {
  const text = Buffer.from(encodeRecord(startKind, start)).toString();
  return { text, crc: crcOf(text) };
}

export function encodeEnd(end: ExportEnd): string {
  return Buffer.from(encodeRecord(endKind, end)).toString();
}

/** Throws CORRUPT, NEWER_FORMAT. */
export function decodeStart(line: Uint8Array, source: string): ExportStart & { readonly crc: number } {
  return { ...decodeRecord(startKind, line, source), crc: crcOf(Buffer.from(line).toString()) };
}

const endMark = Buffer.from('{"kind":');

/** Returns undefined for a line of the log. */
export function findEnd(line: Uint8Array, source: string): ExportEnd | undefined {
  const isRecord = Buffer.compare(line.subarray(0, endMark.length), endMark) === 0;
  return isRecord ? decodeRecord(endKind, line, source) : undefined;
}

/** Returns the last eight digits before `"}` and the newline. */
function crcOf(record: string): number {
  return Number.parseInt(record.slice(-11, -3), 16);
}
