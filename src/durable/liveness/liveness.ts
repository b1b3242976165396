// Liveness: which processes of a store are alive, as locks, leases and loops see it. The ground of
// a directory judges by heartbeat files, a database by the sessions that it knows.
import type { HolderInfo } from "../../common.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainOpener } from "../chain/state-chain.ts";
import type { ChangeSource } from "../wait/change-waiter.ts";
import type { HolderRecord } from "./holder-record.ts";
import type { HolderState } from "./liveness-judge.ts";

/** The time for which this process counts as alive. It ends permanently. */
export interface Session {
  /** The holder that this process is until the session ends. */
  readonly holder: Pick<HolderRecord, "id" | "leaseMs">;
  /** Aborts with LOCK_LOST when the session ends. Every lock of the session is then lost. */
  readonly signal: AbortSignal;
  /** True if the session has ended, even just after a sleep, before any timer fired. */
  readonly isOver: boolean;
  /** Throws LOCK_LOST if the session has ended. Call it before and after every step whose result you act on. */
  throwIfOver(): void;
}

/** Tells which processes of a store are alive, and opens chains in it. */
export interface Liveness extends ChainOpener, ChangeSource {
  /** The clock and the other ports that it uses. */
  readonly ports: Pick<Ports, "clock" | "random" | "host" | "watch">;
  /** Never changes. Fences of another ground cannot be compared with those of this one. */
  readonly id: string;
  /** For messages. */
  readonly location: string;
  /** Returns the name of a part in this store: the same under every mount. */
  nameOf(part: string): string;
  /** Returns the session of this process; a new one if the last one ended. Throws CLOSED. */
  session(): Promise<Session>;
  /**
   * Observes one holder. Returns `dead` also for one that has ended. `once` (default false) is for
   * a caller that cannot watch it for a whole lease.
   */
  stateOf(id: string, options?: { readonly once?: boolean }): Promise<HolderState>;
  /** Returns a holder, even a dead one. Returns undefined if it has ended and left nothing. */
  findHolder(id: string): Promise<HolderInfo | undefined>;
  /** Returns every holder that has joined, as other processes see it. */
  holders(): Promise<HolderInfo[]>;
  /** Returns the shortest lease of the observed holders of `owned`, at most `leaseMs`. */
  shortestLeaseMs(owned: readonly { readonly holder: string }[], leaseMs: number): number;
  /** Removes what dead holders left. Any number of processes may do it at once. */
  sweep(): Promise<unknown>;
  /** Ends the session of this process. After it, `session` throws CLOSED. */
  close(): Promise<void>;
}
