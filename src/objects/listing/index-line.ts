// A line of the index: a key with one of its incarnations, announced or ended.
import { holdfastError } from "../../errors.ts";

/** One life of a key: from its first slot until it is closed and removed. */
export interface KeyLife {
  readonly key: string;
  readonly incarnation: string;
}

export interface IndexLine extends KeyLife {
  /**
   * False: the life was announced before it began. True: the life has begun and is about to end. It
   * has ended once its first slot is gone.
   */
  readonly isEnded: boolean;
}

const endMark = " -";

/** Format: the key as JSON, a space, the incarnation, and " -" if the life is about to end. */
export function encodeLine({ key, incarnation, isEnded }: IndexLine): string {
  return `${JSON.stringify(key)} ${incarnation}${isEnded ? endMark : ""}\n`;
}

/** Decodes a line without its line feed. Throws CORRUPT. */
export function decodeLine(text: string, path: string): IndexLine {
  const quote = text.lastIndexOf('"');
  const isEnded = text.endsWith(endMark);
  const incarnation = text.slice(quote + 2, isEnded ? -endMark.length : undefined);
  const json = text.slice(0, quote + 1);
  try {
    // Most keys need no unescaping.
    const key: unknown = json.includes("\\") ? JSON.parse(json) : json.slice(1, -1);
    if (quote > 0 && text.startsWith('"') && incarnation !== "" && typeof key === "string")
      return { key, incarnation, isEnded };
  } catch {
    // Reported below.
  }
  throw damagedRun(path, "a line is not a key with its incarnation");
}

/** Orders by key, then by life; an announcement precedes its end. */
export function compareLines(one: IndexLine, other: IndexLine): number {
  return (
    compareKeys(one.key, other.key) ||
    (one.incarnation < other.incarnation ? -1 : one.incarnation > other.incarnation ? 1 : 0) ||
    Number(one.isEnded) - Number(other.isEnded)
  );
}

/** UTF-8 byte order, which differs from the order of JavaScript strings beyond U+FFFF. */
export function compareKeys(one: string, other: string): number {
  if (one === other) return 0;
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const unit = one.charCodeAt(at);
    const otherUnit = other.charCodeAt(at);
    if (unit !== otherUnit) return byteRank(unit) - byteRank(otherUnit);
  }
  return one.length - other.length;
}

/** Surrogates, the halves of a character beyond U+FFFF, sort after all other code units. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

export function damagedRun(path: string, why: string): Error {
  const message = `${path} is not a valid run of keys: ${why}. Repair the store: the index is rebuilt from the keys.`;
  return holdfastError("CORRUPT", message, { path });
}

/** Returns the error for an index whose files something other than a merge removed. */
export function lostIndex(path: string): Error {
  const message = `${path} has lost files that it needs. Close the programs that use the store and repair it: the index is rebuilt from the keys.`;
  return holdfastError("CORRUPT", message, { path });
}
