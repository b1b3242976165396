// A line of the index: a key and one of its incarnations, which was announced, or is over.
import { holdfastError } from "../../errors.ts";

/** One life of a key: from its first slot on until it is closed and removed. */
export interface KeyLife {
  readonly key: string;
  readonly incarnation: string;
}

export interface IndexLine extends KeyLife {
  /**
   * False: a process has announced this life before it began. True: the life has begun, so no
   * process is about to begin it, and is to end. It is over when its first slot is gone.
   */
  readonly isEnded: boolean;
}

const endMark = " -";

/** JSON of the key, a space, the incarnation; a minus behind it says that the life is to end. */
export function encodeLine({ key, incarnation, isEnded }: IndexLine): string {
  return `${JSON.stringify(key)} ${incarnation}${isEnded ? endMark : ""}\n`;
}

/** Of a line without its line feed. CORRUPT. */
export function decodeLine(text: string, path: string): IndexLine {
  const quote = text.lastIndexOf('"');
  const isEnded = text.endsWith(endMark);
  const incarnation = text.slice(quote + 2, isEnded ? -endMark.length : undefined);
  const json = text.slice(0, quote + 1);
  try {
    // Most keys have nothing to be unescaped.
    const key: unknown = json.includes("\\") ? JSON.parse(json) : json.slice(1, -1);
    if (quote > 0 && text.startsWith('"') && incarnation !== "" && typeof key === "string")
      return { key, incarnation, isEnded };
  } catch {
    // Told below.
  }
  throw damagedRun(path, "a line is not a key with its incarnation");
}

/** By key, then by life; the announcement before the end. */
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

/** The halves of a character beyond U+FFFF come behind all other units. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

export function damagedRun(path: string, why: string): Error {
  const message = `${path} is not a run of keys: ${why}. Have the store verified and repaired: the index is made again from the keys.`;
  return holdfastError("CORRUPT", message, { path });
}

/** Of an index whose files were removed by something else than a merge. */
export function lostIndex(path: string): Error {
  const message = `${path} has lost files that it needs. Close the programs that use the store, and have it verified and repaired: the index is made again from the keys.`;
  return holdfastError("CORRUPT", message, { path });
}
