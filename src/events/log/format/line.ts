// One line of the log: all that one append call wrote. What an index needs comes first, the payload after it, and last a checksum that is seeded with that
// of the line before: a line is valid in one place only.
import { crc32 } from "node:zlib";
import { holdfastError } from "../../../errors.ts";
import type { Items } from "../../model/query.ts";
import { hexOf, type Tip } from "./tip.ts";

/** Nobody needs more in one call; what does is a file, and belongs beside the log. */
export const lineBytesMax: number = 16 * 1024 * 1024;

/** What is found by: the part of an event that comes first. */
export interface EventHead {
  readonly type: string;
  readonly tags: readonly string[];
  readonly id: string;
  /** The caller chose the id, so it may come again. */
  readonly given?: true;
}

/** What is only carried. */
export interface EventBody {
  readonly data: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Of the schema that `data` was written by. Absent: 1. */
  readonly version?: number;
}

export interface StoredCondition {
  readonly if: Items;
  readonly after?: number;
}

/** Tags that were added later to events that were there before. */
export interface Retag {
  readonly positions: readonly number[];
  readonly tags: readonly string[];
}

export interface LineHead {
  /** The position of its first event; of the next one when it has none. */
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

/** All of a line that does not depend on its place: made when the call is made, so that nothing is serialised under the lock. TOO_LARGE. */
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

/** `seed`: the checksum of the line before. */
export function encodeLine(content: string, first: number, time: string, seed: number): EncodedLine {
  const text = `{"first":${first},"time":${JSON.stringify(time)}${content}`;
  const crc = crc32(text, seed);
  const line = `${text}${crcMark}${hexOf(crc)}"}\n`;
  return { text: line, bytes: Buffer.byteLength(line), crc };
}

/** The tip when this line is added. */
export function tipAfter(
  tip: Tip,
  { events, retag }: Pick<LineContent, "events" | "retag">,
  { bytes, crc }: Pick<EncodedLine, "bytes" | "crc">,
): Tip {
  const { segment } = tip;
  const retagged = retag === undefined ? tip.retagged : segment;
  return { segment, length: tip.length + bytes, position: tip.position + events.length, crc, retagged };
}

/** The checksum that a whole line (with its newline) says it has; undefined when it does not fit its bytes. */
export function findLineCrc(line: Uint8Array, seed: number): number | undefined {
  const end = line.length - lineTailBytes;
  if (end <= 0) return undefined;
  const stored = storedCrcOf(line);
  return stored !== undefined && crc32(line.subarray(0, end), seed) === stored ? stored : undefined;
}

const crcMarkBytes = Buffer.from(crcMark);
const lineEndBytes = Buffer.from('"}\n');

/** What the last bytes of a line say, believed by nobody who has not checked it. Byte by byte: it is done for every line that is read. */
export function storedCrcOf(line: Uint8Array): number | undefined {
  const at = line.length - lineTailBytes;
  if (at < 0 || !hasAt(line, at, crcMarkBytes) || !hasAt(line, line.length - 3, lineEndBytes)) return undefined;
  let crc = 0;
  for (let digit = at + crcMark.length; digit < line.length - 3; digit++) {
    const value = hexValueOf(line[digit] as number);
    if (value < 0) return undefined;
    crc = crc * 16 + value;
  }
  return crc;
}

/** -1 for what is no digit: only lower case is written. */
function hexValueOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x61 + 10 : -1;
}

/** Whether `part` stands in `bytes` at `at`. */
export function hasAt(bytes: Uint8Array, at: number, part: Uint8Array): boolean {
  for (let index = 0; index < part.length; index++) if (bytes[at + index] !== part[index]) return false;
  return true;
}

/** What an index needs, without parsing the payload: in JSON a quote inside a text is escaped, so the mark cannot be part of one. */
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

/** The text of a line without its place, to write it again in another one. */
export function contentOf(line: Uint8Array): { readonly content: string; readonly time: string } {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length - lineTailBytes).toString("utf8");
  const { time } = decodeHead(line);
  const prefix = `"time":${JSON.stringify(time)}`;
  return { content: text.slice(text.indexOf(prefix) + prefix.length), time };
}
