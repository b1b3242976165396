// The keys of a line, taken from its bytes. Decoding strings, and hashing them, was most of the
// cost of following a log.
import type { IndexedLine } from "../../index/keys/indexed-line.ts";
import { hashOfAscii, keysOf, type EventKeys, type KeyHash, type KeyKind } from "../../index/keys/key-hash.ts";
import { hasAt, type Retag } from "../format/line.ts";
import { headOf, type RawLine } from "./scan.ts";

export interface ReadLine {
  readonly line: IndexedLine;
  readonly retag: Retag | undefined;
}

/** CORRUPT when the checksum fits and the content is no line: another program wrote it. */
export function readLine(segment: number, path: string, raw: RawLine): ReadLine {
  const { offset, bytes } = raw;
  const found = findKeys(bytes);
  if (found !== undefined)
    return { line: { segment, offset, bytes: bytes.length, first: found.first, keys: found.keys }, retag: undefined };
  const { first, events, retag } = headOf(path, raw);
  return { line: { segment, offset, bytes: bytes.length, first, keys: events.map(keysOf) }, retag };
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
/** Numbers with so many digits are exact. */
const digitsMax = 15;

function bytesOf(mark: string): Uint8Array {
  return new Uint8Array(Buffer.from(mark));
}

/**
 * For a line exactly as `encodeLine` writes it, with plain ASCII before the payload. Undefined for
 * any other: JSON decodes it.
 */
function findKeys(line: Uint8Array): Pick<IndexedLine, "first" | "keys"> | undefined {
  const begin = pass(line, 0, firstMark);
  const end = passNumber(line, begin);
  let at = passText(line, pass(line, end, timeMark));
  const condition = pass(line, at, conditionMark);
  if (condition !== none) at = passCondition(line, condition);
  const keys: EventKeys[] = [];
  at = passEvent(line, pass(line, at, eventsMark), keys);
  while (line[at] === comma) at = passEvent(line, at + 1, keys);
  const isWhole = pass(line, passByte(line, at, endOfList), payloadMark) !== none;
  return isWhole ? { first: numberIn(line, begin, end), keys } : undefined;
}

// Each passX(line, from) returns the offset after X, or `none`; `none` propagates.
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
 * A list of texts, with its closing bracket. With `keys` they are tags, and their hashes are added.
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

/** A text with its closing quote; `none` for one with escapes or other than ASCII. */
function passText(line: Uint8Array, from: number): number {
  if (from === none) return none;
  for (let at = from; at < line.length; at++) {
    const byte = line[at] as number;
    if (byte === quote) return at + 1;
    if (byte === backslash || byte < 0x20 || byte >= 0x80) return none;
  }
  return none;
}

/** `none` for a number that is not valid in JSON, or too large to be exact. */
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
  return from !== none && hasAt(line, from, mark) ? from + mark.length : none;
}
