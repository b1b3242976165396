// The tip: how far the log is published. Nothing beyond it counts, and no reader goes past it.
import { countOf, objectOf, textOf } from "../../../format/decoding.ts";

export interface Tip {
  /** 0 before the first segment. */
  readonly segment: number;
  /** Number of published bytes in that segment. */
  readonly length: number;
  /** Position of the last event; 0 if there is none. */
  readonly position: number;
  /** Checksum of the last line, or of the segment's header; it seeds the next line. */
  readonly crc: number;
  /** The newest segment with a retag, 0 if there is none. Its header leads to the previous one. */
  readonly retagged: number;
}

export const emptyTip: Tip = { segment: 0, length: 0, position: 0, crc: 0, retagged: 0 };

/** True if both are the same point, by segment and length. */
export function isSameTip(one: Tip, other: Tip): boolean {
  return one.segment === other.segment && one.length === other.length;
}

/**
 * True if both also agree on all lines before it. A copy of the log that was continued separately may have another
 * line that ends at the same point.
 */
export function isEqualTip(one: Tip, other: Tip): boolean {
  return isSameTip(one, other) && one.position === other.position && one.crc === other.crc;
}

export function isBefore(one: Tip, other: Tip): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.length < other.length);
}

export function hexOf(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}

/** A tip as stored in records. */
export interface StoredTip extends Omit<Tip, "crc"> {
  readonly crc: string;
}

export function storedTip({ segment, length, position, crc, retagged }: Tip): StoredTip {
  return { segment, length, position, retagged, crc: hexOf(crc) };
}

export function decodeTip(value: unknown): Tip {
  const fields = objectOf(value);
  const crc = textOf(fields.crc);
  if (!/^[0-9a-f]{8}$/.test(crc)) throw new TypeError("not a checksum");
  return {
    segment: countOf(fields.segment),
    length: countOf(fields.length),
    position: countOf(fields.position),
    crc: Number.parseInt(crc, 16),
    retagged: countOf(fields.retagged),
  };
}
