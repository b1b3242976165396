// The publishing interface: a writer begins a session under the gate. Its lines count once the session has published
// the new tip.
import type { StoreHold } from "../../../locks/store/store-lock.ts";
import type { Tip } from "../format/tip.ts";

/**
 * The gate as a writer needs it. If its lock file is deleted, a second writer can enter, so each decisive step checks
 * the gate.
 */
export type WriterGate = Pick<StoreHold, "assertHeld" | "lockId">;

export interface Publisher {
  /** Returns how far the log is published now. Needs no lock. */
  tip(): Promise<Tip>;
  /** Begins a session under `gate`. Recovers lines of a dead writer first. */
  begin(gate: WriterGate): Promise<WriteSession>;
  rewriting(): LogRewrite;
  close(): Promise<void>;
}

/** A repair: under the gate, it sets another end of the log, after a point that was published before. */
export interface LogRewrite {
  /** Returns a free number for a new segment, at least `least`. Throws LOCK_LOST if another writer took over. */
  next(least: number): Promise<number>;
  /**
   * From now on the log ends here, wherever it ended before. Everything up to this point must be durable. Throws
   * LOCK_LOST.
   */
  publish(tip: Tip): Promise<void>;
}

/** The right to write at the end of the log, from `begin` until `close`, the last publish, or the first failure. */
export interface WriteSession {
  /** The tip that is published so far. Calls are judged against it. */
  readonly published: Tip;
  /** The point at which the next line is written: `published`, or after the header of a new segment. */
  readonly end: Tip;
  /** True if the next line must begin a new segment. The next session begins it. */
  readonly isFull: boolean;
  /**
   * Writes lines at the end, makes them durable, and publishes `next`. Once it resolves, they
   * count, whatever happens. `isLast`: the session then ends, and another writer may write there.
   * `isIdle`: a hint for the sync.
   *
   * Throws WriteSessionLost: none of the lines counts or ever will, and they may be written again.
   * OUTCOME_UNKNOWN: they may count. Any other error: none of them counts or ever will.
   */
  publish(lines: Uint8Array, next: Tip, isLast: boolean, isIdle?: () => boolean): Promise<void>;
  /** Gives up the right to write. No disk call of this session is in progress afterwards. Idempotent. */
  close(): Promise<void>;
}

/**
 * Thrown once the session has ended: it has published for the last time, or another writer took over. Its lines may
 * be written again.
 */
export class WriteSessionLost extends Error {
  override readonly name = "WriteSessionLost";
}
