// A line of the log: everything that one append call wrote. The part that an index needs comes first, then the
// payload, then a checksum. It is seeded with the checksum of the previous line, so a line is valid at only one point
// of one log.
import { crc32 } from "node:zlib";
import { holdfastError } from "../../../errors.ts";
import type { Items } from "../../model/query.ts";
import type { EventBody, EventHead } from "../../model/stored-event.ts";
import { hexOf, type Tip } from "./tip.ts";

/** Larger content belongs in a file beside the log. */
export const lineBytesMax: number = 16 * 1024 * 1024;

export interface StoredCondition {
  readonly if: Items;
  readonly after?: number;
}

/** Tags added to earlier events. */
export interface Retag {
  readonly positions: readonly number[];
  readonly tags: readonly string[];
}

export interface LineHead {
  /** The position of its first event; if it has none, that of the next event. */
  readonly first: number;
  readonly time: string;
  readonly condition?: StoredCondition;
  readonly retag?: Retag;
  readonly events: readonly EventHead[];
}

export interface LineContent {
  readonly condition?: StoredCondition | undefined;
  readonly retag?: Retag | undefined;
  readonly events: readonly EventHead[];
  /** The JSON of each body. */
  readonly payload: readonly string[];
}

const payloadMark = ',"payload":[';
const crcMark = ',"crc":"';
/** `,"crc":"01234567"}` and the newline. */
export const lineTailBytes: number = crcMark.length + 8 + 3;

/** Encodes the part of a line that does not depend on its position, before the gate is acquired. Throws TOO_LARGE. */
export function encodeContent({ condition, retag, events, payload }: LineContent): string {
  const head = JSON.stringify({ condition, retag, events });
  const text = `,${head.slice(1, -1)}${payloadMark}${payload.join(",")}]`;
  const bytes = Buffer.byteLength(text) + 100;
  if (bytes <= lineBytesMax) return text;
  const message = `This append has ${bytes} bytes; the limit is ${lineBytesMax}. Put large content into files and name them in the event.`;
  throw holdfastError("TOO_LARGE", message, { limit: lineBytesMax, actual: bytes });
}

export interface EncodedLine {
  readonly text: string;
  readonly bytes: number;
  readonly crc: number;
}

/** `seed`: the checksum of the previous line. */
export function encodeLine(content: string, first: number, time: string, seed: number): EncodedLine {
  const text = `{"first":${first},"time":${JSON.stringify(time)}${content}`;
  const crc = crc32(text, seed);
  const line = `${text}${crcMark}${hexOf(crc)}"}\n`;
  return { text: line, bytes: Buffer.byteLength(line), crc };
}

/** Returns the tip after this line. */
export function tipAfter(
  tip: Tip,
  { events, retag }: Pick<LineContent, "events" | "retag">,
  { bytes, crc }: Pick<EncodedLine, "bytes" | "crc">,
): Tip {
  const { segment } = tip;
  const retagged = retag === undefined ? tip.retagged : segment;
  return { segment, length: tip.length + bytes, position: tip.position + events.length, crc, retagged };
}

/** Returns the checksum of a whole line, including its newline, or undefined if it does not match the bytes. */
export function findLineCrc(line: Uint8Array, seed: number): number | undefined {
  const end = line.length - lineTailBytes;
  if (end <= 0) return undefined;
  const stored = storedCrcOf(line);
  return stored !== undefined && crc32(line.subarray(0, end), seed) === stored ? stored : undefined;
}

const crcMarkBytes = Buffer.from(crcMark);
const lineEndBytes = Buffer.from('"}\n');

/**
 * Returns the checksum at the end of a line, without verifying it. Works byte by byte, because it runs for every line
 * that is read.
 */
export function storedCrcOf(line: Uint8Array): number | undefined {
  const at = line.length - lineTailBytes;
  if (at < 0 || !hasBytesAt(line, at, crcMarkBytes) || !hasBytesAt(line, line.length - 3, lineEndBytes))
    return undefined;
  let crc = 0;
  for (let digit = at + crcMark.length; digit < line.length - 3; digit++) {
    const value = hexValueOf(line[digit] as number);
    if (value < 0) return undefined;
    crc = crc * 16 + value;
  }
  return crc;
}

/** Returns -1 for any byte but a digit or a lower-case letter from a to f. */
function hexValueOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x61 + 10 : -1;
}

/** True if `bytes` has `part` at offset `at`. */
export function hasBytesAt(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  for (let index = 0; index < part.length; index++) if (bytes[at + index] !== part[index]) return false;
  return true;
}

/** Decodes a line without its payload. The payload mark cannot occur inside a string, because JSON escapes quotes. */
export function decodeHead(line: Uint8Array): LineHead {
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.length);
  const end = bytes.indexOf(payloadMark);
  if (end < 0) throw new SyntaxError("a line without payload");
  return JSON.parse(`${bytes.toString("utf8", 0, end)}}`) as LineHead;
}

export type Line = LineHead & { readonly payload: readonly EventBody[] };

export function decodeLine(line: Uint8Array): Line {
  return JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.length).toString("utf8")) as Line;
}

/**
 * Returns the text of a line without position, time and checksum, so that it can be written again at another point.
 */
export function contentOf(line: Uint8Array): { readonly content: string; readonly time: string } {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length - lineTailBytes).toString("utf8");
  const { time } = decodeHead(line);
  const prefix = `"time":${JSON.stringify(time)}`;
  return { content: text.slice(text.indexOf(prefix) + prefix.length), time };
}
