// The options and entries of a rolling chain.
import type { RecordKind } from "../../format/record.ts";
import type { SlotsPerEpoch } from "./epoch-rollover.ts";
import type { DeltaKind } from "./state-delta.ts";

/** Options of `RollingChain.open`. */
export interface RollingChainOptions<T> {
  /** The kind of record that holds the state. */
  readonly kind: RecordKind<T>;
  /** The state before the first append. */
  readonly initial: T;
  /**
   * Returns true if the append `id` is part of this state or of its past; undefined if that can no
   * longer be known. Called with the newest state only, and only by an appender that slept while
   * its whole epoch was completed and collected.
   */
  readonly counts: (state: T, id: string) => boolean | Promise<boolean | undefined>;
  /**
   * Checks only what `made` adds to `before`, and throws if that could not be read back. For large
   * states that change little. Default: the whole state is checked.
   */
  readonly check?: ((made: T, before: T) => void) | undefined;
  /**
   * Stores only differences in slots, for states with many entries. A chain that was created
   * without it stays without until it is upgraded, because older releases may use it. Default:
   * every slot holds the whole state.
   */
  readonly deltas?: DeltaKind<T> | undefined;
  /**
   * Number of slots of an epoch. Default 4096; fewer if the state is so large that they would take
   * more than 64 MiB.
   */
  readonly slotsPerEpoch?: SlotsPerEpoch | undefined;
  /**
   * Makes every append durable. Pass false on a local disk if no process that saw a number outlives
   * a power cut, as with locks: the first process that opens the chain after a restart starts a new
   * epoch, and the numbers jump. A network mount always syncs. Default true.
   */
  readonly sync?: boolean | undefined;
  /** The boot id of this kernel, as `Host.bootId`. */
  readonly bootId: string;
  /**
   * Returns true if appends of an unsynced epoch may be given up because one of its slots is torn.
   * Must return false while a process that has won there is alive. Default: always true.
   */
  readonly mayGiveUp?: (() => Promise<boolean>) | undefined;
}

/** An entry of a rolling chain. */
export interface RollingEntry<T> {
  /** Number of the entry. It grows with every append, and may jump. */
  readonly number: number;
  /** The state after the append. */
  readonly state: T;
}

/** Options of `RollingChain.append`. */
export interface AppendOptions {
  /**
   * Called before `change`, once for each attempt; returns new paths. The append creates files there
   * before the slot, and keeps them if it wins the slot. A single path becomes a second name of the
   * slot's file.
   */
  readonly keepAs?: (() => readonly string[]) | undefined;
  /**
   * Statements of SQL that are committed with the append, and not without it. Only for a chain in a
   * database.
   */
  readonly beside?: readonly string[] | undefined;
  /** Makes this append durable, even if the chain has `sync: false`. Default: the `sync` of the chain. */
  readonly sync?: boolean | undefined;
}
