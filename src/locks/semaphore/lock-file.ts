// The content of a lock file, protocol 1.0: how Holdfast writes it, how it reads it from any program, and how it
// classifies a file without a readable record. Pure.

/** The record of a lock file in protocol 1.0. */
export interface LockFileInfo {
  /** Process id of the holder. */
  pid: number;
  /** When the lock was acquired, in Unix seconds. */
  timestamp: number;
  /** A text for people. */
  tag?: string;
}

/** The keys that Holdfast adds. Other programs ignore them. */
export interface LockRecord extends LockFileInfo {
  /** Identifies one acquisition and is never reused: the proof of ownership. */
  readonly token?: string;
  /** Host name, for people. */
  readonly host?: string;
  readonly boot?: string;
  /** Identifies the process table of that kernel to which the pid belongs. */
  readonly space?: string;
  readonly start?: string;
  /** `local` if the lock was on a local disk of the writer's machine. */
  readonly volume?: string;
}

/** No program writes more, so a larger file is not a lock file. */
export const lockFileBytesMax = 65_536;

const tagLengthMax = 1_000;
const extraLengthMax = 200;
// Windows pids have 32 bits. 0 is not a process.
const pidMax = 2 ** 32 - 1;
// The last second of the year 9999.
const timestampMax = 253_402_300_799;
const extraKeys = ["token", "host", "boot", "space", "start", "volume"] as const;
/** All keys that Holdfast knows. */
const recordKeys: readonly string[] = ["pid", "timestamp", "tag", ...extraKeys];

/**
 * Parses a lock file. Returns undefined if a required field is missing or malformed. Lines end with
 * LF or CRLF; blank lines and unknown keys are ignored; the first of two equal keys counts.
 */
export function parseLockFile(text: string): LockFileInfo | undefined {
  const record = parseLockRecord(text);
  return record && infoOf(record);
}

/** Formats a lock file. Throws a RangeError for a pid or timestamp out of range. */
export function formatLockFile(info: LockFileInfo): string {
  return formatLockRecord({ ...infoOf(info) });
}

export function infoOf({ pid, timestamp, tag }: LockFileInfo): LockFileInfo {
  return tag === undefined ? { pid, timestamp } : { pid, timestamp, tag };
}

export function parseLockRecord(text: string): LockRecord | undefined {
  if (text.length > lockFileBytesMax) return undefined;
  const fields = fieldsOf(text);
  const pid = findWholeNumber(fields.get("pid"), 1, pidMax);
  const timestamp = findWholeNumber(fields.get("timestamp"), 0, timestampMax);
  if (pid === undefined || timestamp === undefined) return undefined;
  const record: Record<string, unknown> = { pid, timestamp };
  const tag = cleanText(fields.get("tag"), tagLengthMax);
  if (tag !== undefined) record["tag"] = tag;
  for (const key of extraKeys) {
    const value = cleanText(fields.get(key), extraLengthMax);
    if (value !== undefined) record[key] = value;
  }
  return record as unknown as LockRecord;
}

export function formatLockRecord(record: LockRecord): string {
  const { pid, timestamp } = record;
  if (!isWholeNumber(pid, 1, pidMax)) throw new RangeError(`pid must be a whole number from 1 to ${pidMax}.`);
  if (!isWholeNumber(timestamp, 0, timestampMax))
    throw new RangeError(`timestamp must be a whole number of seconds from 0 to ${timestampMax}.`);
  const lines = [`pid=${pid}`, `timestamp=${timestamp}`];
  // The keys of the protocol come first: of two equal keys the first counts, and a program that reads line by line
  // finds these soonest.
  const tag = cleanText(record.tag, tagLengthMax);
  if (tag !== undefined) lines.push(`tag=${tag}`);
  for (const key of extraKeys) {
    const value = cleanText(record[key], extraLengthMax);
    if (value !== undefined) lines.push(`${key}=${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Returns the trimmed lines, without a byte order mark at the start and without zero bytes at the end. A fixed buffer
 * or a crash leaves zeros.
 */
function linesOf(text: string): string[] {
  let end = text.length;
  while (text[end - 1] === "\0") end--;
  const lines = text
    .slice(0, end)
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/);
  return lines.map((line) => line.trim());
}

function fieldsOf(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const field of linesOf(text)) {
    const at = field.indexOf("=");
    if (at < 1) continue;
    const key = field.slice(0, at);
    if (!fields.has(key)) fields.set(key, field.slice(at + 1));
  }
  return fields;
}

function findWholeNumber(text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  const number = Number(text);
  return isWholeNumber(number, min, max) ? number : undefined;
}

function isWholeNumber(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

/**
 * Returns the text as one line of at most `lengthMax` characters, or undefined if nothing is left. Removes control
 * characters: a line break in a tag would start another field, and others would reach the terminal that prints it.
 */
function cleanText(text: string | undefined, lengthMax: number): string | undefined {
  if (text === undefined) return undefined;
  // Cut roughly first, so that a tag of megabytes costs nothing, then exactly, by whole characters.
  const line = text
    .slice(0, 2 * lengthMax)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    .replace(/\p{Surrogate}/gu, "\uFFFD");
  const cleaned = Array.from(line).slice(0, lengthMax).join("").trim();
  return cleaned === "" ? undefined : cleaned;
}

/**
 * Classes of text without a readable record:
 * - `torn`: empty, or a cut-off record. Its writer stopped there.
 * - `malformed`: both required keys, with unreadable values (a time in milliseconds, a name as pid). Its writer has
 *   finished, and may still hold the lock.
 * - `unfinished`: fields with other keys. It may be the beginning of another program's record, or a settings file. It
 *   is one only if its writer completes it soon.
 * - `data`: no record begins like this.
 */
export type UnreadableContents = "torn" | "malformed" | "unfinished" | "data";

const fieldKey = /^[A-Za-z_][\w.-]{0,63}$/;
/** A program that follows the protocol writes one of these keys first. */
const requiredKeys = ["pid", "timestamp"];

/** Classifies a text without a readable record. */
export function contentsOf(text: string): UnreadableContents {
  const lines = linesOf(text);
  // Only the last line can be cut off: the others have their line breaks.
  const cut = lines.pop() ?? "";
  const whole = lines.filter((line) => line !== "");
  if (![...whole, cut.includes("=") ? cut : `${cut || "_"}=`].every(isField)) return "data";
  if (
    requiredKeys.every((key) =>
      [...whole, cut].some((line) => line.length > key.length + 1 && line.startsWith(`${key}=`)),
    )
  )
    return "malformed";
  const [first = cut, ...others] = cut === "" ? whole : [...whole, cut];
  if (first === "") return "torn";
  return mayBegin(first, requiredKeys) && others.every((line) => mayBegin(line, recordKeys)) ? "torn" : "unfinished";
}

/** True for a key and a value on one line, without control characters other than tabs. */
function isField(line: string): boolean {
  const at = line.indexOf("=");
  return at > 0 && fieldKey.test(line.slice(0, at)) && !/\p{Cc}/u.test(line.slice(at).replaceAll("\t", " "));
}

function mayBegin(line: string, keys: readonly string[]): boolean {
  return keys.some((key) => (line.includes("=") ? line.startsWith(`${key}=`) : key.startsWith(line)));
}
