// How lines come to count: somebody writes them in a tenure, and they count when the tenure has published the new tip.
import type { StoreHold } from "../../../locks/store/store-lock.ts";
import type { Tip } from "../format/tip.ts";

/** The gate as a writer needs it, who must not rely on having it alone if its lock file was deleted. */
export type WriterGate = Pick<StoreHold, "assertHeld" | "lockId">;

export interface Publisher {
  /** How far the log is published now. Takes no lock. */
  tip(): Promise<Tip>;
  /** Begins to write, with `gate` in hand. What a dead writer has left is dealt with here. */
  begin(gate: WriterGate): Promise<Tenure>;
  rewriting(): Rewriting;
  close(): Promise<void>;
}

/** A repair: with the gate in hand, the log is given another end, which lies behind a point that was published before. */
export interface Rewriting {
  /** The number for a new segment: free, and `least` at least. LOCK_LOST when another writer took over. */
  next(least: number): Promise<number>;
  /** From now on the log ends here, wherever it ended before. What leads to it is durable. LOCK_LOST. */
  publish(tip: Tip): Promise<void>;
}

export interface Tenure {
  /** What counts so far: calls are judged against it. */
  readonly published: Tip;
  /** Where the next line goes: there, or behind the header of a new segment. */
  readonly end: Tip;
  /** The next line belongs into a new segment: that is what the next tenure begins with. */
  readonly isFull: boolean;
  /**
   * Writes lines at the end, makes them durable, and publishes `next`. Afterwards they count, whatever happens. `isLast`: this writer is done, and another may
   * write there now, so nothing more is written in this tenure.
   * `isIdle`: a hint for the sync.
   * TenureLost: nothing of it counts, and nothing of it ever will. Another error that is not OUTCOME_UNKNOWN: the same, for good.
   */
  publish(lines: Uint8Array, next: Tip, isLast: boolean, isIdle?: () => boolean): Promise<void>;
  /** Gives up the right to write; no call to the disk of this tenure is under way any more. Idempotent. */
  close(): Promise<void>;
}

/** Another writer has taken this one for dead. Its lines are void, and can be written again. */
export class TenureLost extends Error {
  override readonly name = "TenureLost";
}
