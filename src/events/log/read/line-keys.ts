// Extracts the keys of a line from its bytes, without decoding strings: decoding and hashing them was most of the
// cost of following a log.
import type { IndexedLine, SealedSegment } from "../../index/keys/indexed-line.ts";
import { hashOfAscii, keysOf, type EventKeys, type KeyHash, type KeyKind } from "../../index/keys/key-hash.ts";
import { hasBytesAt, type Retag } from "../format/line.ts";
import type { Disk } from "../../../ports/disk.ts";
import { readHeader, segmentPath } from "../format/segment.ts";
import { headOf, scanPublished, type RawLine } from "./scan.ts";

export interface ReadLine {
  readonly line: IndexedLine;
  readonly retag: Retag | undefined;
}

/** Throws CORRUPT if the checksum is right but the content is not a line: another program wrote it. */
export function readLine(segment: number, path: string, raw: RawLine): ReadLine {
  const { offset, bytes } = raw;
  const found = findKeys(bytes);
  if (found !== undefined) {
    const { first, timeMs, keys } = found;
    return { line: { segment, offset, bytes: bytes.length, first, timeMs, keys }, retag: undefined };
  }
  const { first, time, events, retag } = headOf(path, raw);
  const timeMs = Date.parse(time);
  return { line: { segment, offset, bytes: bytes.length, first, timeMs, keys: events.map(keysOf) }, retag };
}

/** Yields the lines of a sealed segment. Throws CORRUPT. */
export async function* readSealed(
  disk: Disk,
  directory: string,
  { number, length }: SealedSegment,
): AsyncGenerator<ReadLine, void> {
  const { bytes: from, crc } = await readHeader(disk, directory, number);
  for await (const lines of scanPublished(disk, directory, { segment: number, from, to: length, crc }))
    for (const line of lines) yield readLine(number, segmentPath(directory, number), line);
}

/** Yields the lines from which the index of a segment is built. Throws CORRUPT. */
export async function* scanSealed(
  disk: Disk,
  directory: string,
  segment: SealedSegment,
): AsyncGenerator<IndexedLine, void> {
  for await (const { line } of readSealed(disk, directory, segment)) yield line;
}

const firstMark = bytesOf('{"first":');
const timeMark = bytesOf(',"time":"');
const conditionMark = bytesOf(',"condition":{"if":[');
const typesMark = bytesOf('{"types":[');
const afterMark = bytesOf(',"after":');
const eventsMark = bytesOf(',"events":[');
const typeMark = bytesOf('{"type":"');
const tagsMark = bytesOf(',"tags":[');
const idMark = bytesOf(',"id":"');
const givenMark = bytesOf(',"given":true');
const payloadMark = bytesOf(',"payload":[');
const zero = 0x30;
const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const close = 0x7d;
const endOfList = 0x5d;
/** Numbers with up to this many digits are exact. */
const digitsMax = 15;

function bytesOf(mark: string): Uint8Array {
  return new Uint8Array(Buffer.from(mark));
}

/**
 * Reads a line exactly as `encodeLine` writes it, with plain ASCII before the payload. Returns undefined for any
 * other line, which is then decoded as JSON.
 */
function findKeys(line: Uint8Array): Pick<IndexedLine, "first" | "timeMs" | "keys"> | undefined {
  const begin = pass(line, 0, firstMark);
  const end = passNumber(line, begin);
  const time = pass(line, end, timeMark);
  const timeEnd = passText(line, time);
  let at = timeEnd;
  const condition = pass(line, at, conditionMark);
  if (condition !== none) at = passCondition(line, condition);
  const keys: EventKeys[] = [];
  at = passEvent(line, pass(line, at, eventsMark), keys);
  while (line[at] === comma) at = passEvent(line, at + 1, keys);
  const isWhole = pass(line, passByte(line, at, endOfList), payloadMark) !== none;
  return isWhole ? { first: numberIn(line, begin, end), timeMs: timeIn(line, time, timeEnd - 1), keys } : undefined;
}

/** The format of `toISOString`; # is a digit. */
const timeForm = bytesOf("####-##-##T##:##:##.###Z");
const digitMark = 0x23;

/** Reads the format that every writer uses without creating a string. Returns NaN for a text that is not a time. */
function timeIn(line: Uint8Array, from: number, to: number): number {
  if (!hasTimeForm(line, from, to)) return Date.parse(Buffer.from(line.subarray(from, to)).toString("latin1"));
  const part = (begin: number, end: number): number => numberIn(line, from + begin, from + end);
  return Date.UTC(part(0, 4), part(5, 7) - 1, part(8, 10), part(11, 13), part(14, 16), part(17, 19), part(20, 23));
}

function hasTimeForm(line: Uint8Array, from: number, to: number): boolean {
  // `Date.UTC` reads the year 0050 as 1950.
  if (to - from !== timeForm.length || (line[from] === zero && line[from + 1] === zero)) return false;
  for (let at = 0; at < timeForm.length; at++) {
    const byte = line[from + at];
    if (timeForm[at] === digitMark ? !isDigit(byte) : byte !== timeForm[at]) return false;
  }
  return true;
}

// Each passX(line, from) returns the offset after X, or `none`. A `from` of `none` gives `none`.
const none = -1;

function passCondition(line: Uint8Array, from: number): number {
  let at = passItem(line, from);
  while (line[at] === comma) at = passItem(line, at + 1);
  at = passByte(line, at, endOfList);
  const after = pass(line, at, afterMark);
  return passByte(line, after === none ? at : passNumber(line, after), close);
}

function passItem(line: Uint8Array, from: number): number {
  const types = passTexts(line, pass(line, from, typesMark));
  return passByte(line, passTexts(line, pass(line, types, tagsMark)), close);
}

function passEvent(line: Uint8Array, from: number, events: EventKeys[]): number {
  const keys: KeyHash[] = [];
  events.push(keys);
  let at = passKey(line, pass(line, from, typeMark), "type", keys);
  at = passTexts(line, pass(line, at, tagsMark), keys);
  at = passKey(line, pass(line, at, idMark), "id", keys);
  const given = pass(line, at, givenMark);
  return passByte(line, given === none ? at : given, close);
}

/**
 * Passes a list of strings with its closing bracket. If `keys` is given, the strings are tags, and their hashes are
 * added to it.
 */
function passTexts(line: Uint8Array, from: number, keys?: KeyHash[]): number {
  if (line[from] === endOfList) return from + 1;
  let at = passTag(line, from, keys);
  while (line[at] === comma) at = passTag(line, at + 1, keys);
  return passByte(line, at, endOfList);
}

function passTag(line: Uint8Array, from: number, keys: KeyHash[] | undefined): number {
  const text = passByte(line, from, quote);
  return keys === undefined ? passText(line, text) : passKey(line, text, "tag", keys);
}

function passKey(line: Uint8Array, from: number, kind: KeyKind, keys: KeyHash[]): number {
  const end = passText(line, from);
  if (end !== none) keys.push(hashOfAscii(kind, line, from, end - 1));
  return end;
}

/** Passes a string with its closing quote. Returns `none` for one with escapes or non-ASCII characters. */
function passText(line: Uint8Array, from: number): number {
  if (from === none) return none;
  for (let at = from; at < line.length; at++) {
    const byte = line[at] as number;
    if (byte === quote) return at + 1;
    if (byte === backslash || byte < 0x20 || byte >= 0x80) return none;
  }
  return none;
}

/** Returns `none` for a number that is not valid JSON, or too large to be exact. */
function passNumber(line: Uint8Array, from: number): number {
  if (from === none) return none;
  let at = from;
  while (isDigit(line[at])) at++;
  const digits = at - from;
  const isPlain = digits === 1 || (digits > 1 && digits <= digitsMax && line[from] !== zero);
  return isPlain ? at : none;
}

function numberIn(line: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 10 + (line[at] as number) - zero;
  return value;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= zero + 9;
}

function passByte(line: Uint8Array, from: number, byte: number): number {
  return from !== none && line[from] === byte ? from + 1 : none;
}

function pass(line: Uint8Array, from: number, mark: Uint8Array): number {
  return from !== none && hasBytesAt(line, from, mark) ? from + mark.length : none;
}
