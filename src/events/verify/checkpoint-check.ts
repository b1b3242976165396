// How far a log was followed, and whether that is where it should be.
import { emptyTip, hexOf, type Tip } from "../log/format/tip.ts";
import type { Spot } from "../../part/findings.ts";

/** A tip, of which parts get lost in damage: those are taken from where they are said next. */
export interface CheckpointState {
  readonly segment: number;
  readonly length: number | undefined;
  readonly position: number | undefined;
  readonly crc: number | undefined;
  readonly retagged: number | undefined;
  /** How many were checked. */
  readonly events: number;
  /** Up to here everything can be read. */
  readonly good: Spot & { readonly position: number; readonly tip: Tip };
  readonly isGood: boolean;
}

export function beginningOf(directory: string): CheckpointState {
  const good = { path: directory, position: 0, tip: emptyTip };
  return { segment: 0, length: 0, position: 0, crc: 0, retagged: 0, events: 0, good, isGood: true };
}

const fields = ["segment", "length", "position", "crc", "retagged"] as const;

/** What was said, and what is so; undefined when there is no difference, as far as it is known. */
export function differenceOf(standing: CheckpointState, said: Tip): string | undefined {
  const different = fields.filter((field) => standing[field] !== undefined && standing[field] !== said[field]);
  if (different.length === 0) return undefined;
  const tell = (tip: CheckpointState | Tip): string =>
    different.map((field) => `${field} ${field === "crc" ? hexOf(tip.crc ?? 0) : tip[field]}`).join(", ");
  return `${tell(said)}; but it is ${tell(standing)}`;
}
