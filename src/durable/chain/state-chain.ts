// StateChain: a sequence of numbered states that processes swap, as its users see it. Each append
// wins the next number, and numbers grow forever. A directory keeps one as a `RollingChain`.
import type { Ports } from "../../ports/ports.ts";
import type { AppendOptions, RollingChainOptions, RollingEntry } from "./rolling-chain-options.ts";

/** A sequence of numbered states. Each append wins the next number. */
export interface StateChain<T> {
  /** Returns the newest state. Throws CORRUPT. */
  read(): Promise<RollingEntry<T>>;
  /**
   * Appends the state that `change` derives from the newest one; nothing if it returns undefined.
   * `change` may be called several times, so it must have no effects. The returned entry is won
   * permanently. Throws RESOURCE_BUSY and OUTCOME_UNKNOWN.
   */
  append(
    id: string,
    change: (newest: T, number: number) => T | undefined,
    options?: AppendOptions,
  ): Promise<RollingEntry<T> | undefined>;
  /** Returns false if the newest entry that this process knows was replaced: the chain was restored from a backup. */
  isStanding(): Promise<boolean>;
  /** Deletes old states, and returns how many groups of them. */
  collect(): Promise<number>;
  /** Waits until no collection runs in the background. */
  settled(): Promise<void>;
}

/** Opens state chains by name: a ground, whose names are directories, or a part of a database. */
export interface ChainOpener {
  /** The ports that a chain needs. */
  readonly ports: Pick<Ports, "host" | "random">;
  /** Opens a chain, and creates it if it does not exist. Throws CORRUPT and NEWER_FORMAT. */
  openChain<T>(name: string, options: RollingChainOptions<T>): Promise<StateChain<T>>;
}
