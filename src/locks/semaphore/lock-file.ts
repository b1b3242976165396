// The text of a lock file, protocol 1.0: how Holdfast writes it, reads it from any program, and
// what a file without a readable record may be. Pure.

/** What protocol 1.0 records of a holder. */
export interface LockFileInfo {
  pid: number;
  /** Unix seconds, as the protocol has it. */
  timestamp: number;
  tag?: string;
}

/** What Holdfast adds, in keys that other programs ignore. */
export interface LockRecord extends LockFileInfo {
  /** Names one acquisition and is never used again: the proof of ownership. */
  readonly token?: string;
  /** For people. */
  readonly host?: string;
  readonly boot?: string;
  /** Which process table of that kernel the pid belongs to. */
  readonly space?: string;
  readonly start?: string;
  /** `local` when the writer's machine had the lock on a disk of its own. */
  readonly volume?: string;
}

/** More than any other program writes. A larger file is not a lock file. */
export const lockFileBytesMax = 65_536;

const tagLengthMax = 1_000;
const extraLengthMax = 200;
// Windows pids have 32 bits. 0 is not a process.
const pidMax = 2 ** 32 - 1;
// The end of the year 9999.
const timestampMax = 253_402_300_799;
const extraKeys = ["token", "host", "boot", "space", "start", "volume"] as const;
/** Every key that Holdfast knows. */
const recordKeys: readonly string[] = ["pid", "timestamp", "tag", ...extraKeys];

/**
 * Undefined when a required field is missing or malformed. Lines end with LF or CRLF. Blank lines
 * and unknown keys are ignored. The first of two equal keys counts.
 */
export function parseLockFile(text: string): LockFileInfo | undefined {
  const record = parseLockRecord(text);
  return record && infoOf(record);
}

/** RangeError for numbers that a lock file cannot have. */
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
  // The keys of the protocol come first: the first of two equal keys counts, and a program that
  // reads line by line finds these soonest.
  const tag = cleanText(record.tag, tagLengthMax);
  if (tag !== undefined) lines.push(`tag=${tag}`);
  for (const key of extraKeys) {
    const value = cleanText(record[key], extraLengthMax);
    if (value !== undefined) lines.push(`${key}=${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/**
 * The lines, trimmed, without a byte order mark at the start and without zeros at the end (a fixed
 * buffer, or a crash, leaves zeros).
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
 * One line without control characters, of at most `lengthMax` characters: a line break in a tag
 * would start another field, and control characters would reach the terminal that prints it.
 * Undefined when nothing is left.
 */
function cleanText(text: string | undefined, lengthMax: number): string | undefined {
  if (text === undefined) return undefined;
  // Cut generously first, so that a tag of megabytes costs nothing; then by whole characters.
  const line = text
    .slice(0, 2 * lengthMax)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    .replace(/\p{Surrogate}/gu, "\uFFFD");
  const cleaned = Array.from(line).slice(0, lengthMax).join("").trim();
  return cleaned === "" ? undefined : cleaned;
}

/**
 * What a text without a readable record may be.
 * - `torn`: nothing, or the beginning of a record and nothing else. Its writer came no further.
 * - `malformed`: both required keys, with unreadable values (a time in milliseconds, a name as
 *   pid). Its writer has finished, and may still hold the lock.
 * - `unfinished`: fields with other keys. It may be the beginning of another program's record, or a
 *   settings file. Only its writer can settle that, by completing it soon.
 * - `data`: no record begins like this.
 */
export type Contents = "torn" | "malformed" | "unfinished" | "data";

const fieldKey = /^[A-Za-z_][\w.-]{0,63}$/;
/** A program that follows the protocol writes one of these first. */
const requiredKeys = ["pid", "timestamp"];

/** For a text without a readable record. */
export function contentsOf(text: string): Contents {
  const lines = linesOf(text);
  // Only the last line can be cut off: the others have their line ends.
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

/** Key and value on one line, without control characters other than tabs. */
function isField(line: string): boolean {
  const at = line.indexOf("=");
  return at > 0 && fieldKey.test(line.slice(0, at)) && !/\p{Cc}/u.test(line.slice(at).replaceAll("\t", " "));
}

function mayBegin(line: string, keys: readonly string[]): boolean {
  return keys.some((key) => (line.includes("=") ? line.startsWith(`${key}=`) : key.startsWith(line)));
}
