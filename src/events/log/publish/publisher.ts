// How lines come to count: a writer begins a session under the gate, and its lines count once the
// session has published the new tip.
import type { StoreHold } from "../../../locks/store/store-lock.ts";
import type { Tip } from "../format/tip.ts";

/**
 * The gate as a writer needs it. A deleted lock file lets a second writer in, so the gate is asked
 * before it counts.
 */
export type WriterGate = Pick<StoreHold, "assertHeld" | "lockId">;

export interface Publisher {
  /** How far the log is published now. Takes no lock. */
  tip(): Promise<Tip>;
  /** Begins to write, under `gate`. Deals with what a dead writer has left. */
  begin(gate: WriterGate): Promise<WriteSession>;
  rewriting(): Rewriting;
  close(): Promise<void>;
}

/** A repair: under the gate, the log gets another end, behind a point that was published before. */
export interface Rewriting {
  /** A free number for a new segment, at least `least`. LOCK_LOST when another writer took over. */
  next(least: number): Promise<number>;
  /**
   * From now on the log ends here, wherever it ended before. All that leads to it is durable.
   * LOCK_LOST.
   */
  publish(tip: Tip): Promise<void>;
}

/**
 * The right to write at the end of the log, from `begin` until `close`, the last publish, or the
 * first failure.
 */
export interface WriteSession {
  /** What counts so far: calls are judged against it. */
  readonly published: Tip;
  /** Where the next line goes: the same point, or behind the header of a new segment. */
  readonly end: Tip;
  /** The next line belongs into a new segment, which the next session begins. */
  readonly isFull: boolean;
  /**
   * Writes lines at the end, makes them durable, and publishes `next`. Once it resolves, they
   * count, whatever happens. `isLast`: the session is over then, and another writer may write
   * there. `isIdle`: a hint for the sync.
   *
   * WriteSessionLost: none of the lines counts or ever will; they may be written again.
   * OUTCOME_UNKNOWN: they may count. Any other error: none of them counts or ever will.
   */
  publish(lines: Uint8Array, next: Tip, isLast: boolean, isIdle?: () => boolean): Promise<void>;
  /**
   * Gives up the right to write. No disk call of this session is under way afterwards. Idempotent.
   */
  close(): Promise<void>;
}

/**
 * The session is over: it has published for the last time, or another writer took over. Its lines
 * may be written again.
 */
export class WriteSessionLost extends Error {
  override readonly name = "WriteSessionLost";
}
