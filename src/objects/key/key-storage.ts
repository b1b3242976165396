// KeyStorage is what key chains need: how entries are staged, where directories are prepared, and how
// names are made durable.
import type { Staging } from "../../durable/publish/staging.ts";
import type { KeyEntry } from "../model/entry.ts";

export interface KeyStorage {
  /** Where single files are staged. */
  readonly staging: Staging;
  /** Stages an entry: writes the file that is to become its slot, and syncs it. */
  readonly stage: (entry: NewEntry) => Promise<StagedEntry>;
  /** Removes the file of a staged entry. */
  readonly unstage: (temp: string) => Promise<void>;
  /**
   * Returns the directory in which the session that staged this file prepares directories. Both are
   * swept once the holder of that session is dead.
   */
  readonly prepared: (temp: string) => Promise<string>;
  /** Makes the names in these directories durable. Concurrent callers share one sync. */
  readonly sync: (...directories: readonly string[]) => Promise<void>;
  /** How many slots a directory holds. Default 256. */
  readonly slotsPerBlock?: number | undefined;
}

/** An entry that a caller wants to append. */
export interface NewEntry {
  readonly entry: KeyEntry;
  /** A small body. Its bytes follow the record. */
  readonly inline?: Uint8Array | undefined;
  /** The session directory in which the entry must be staged. Default: that of the current session. */
  readonly stageIn?: string | undefined;
}

/** The file of an entry that is to become a slot. */
export interface StagedEntry {
  readonly entry: KeyEntry;
  readonly temp: string;
  /** The record at its beginning. No other file has it. */
  readonly proof: Uint8Array;
}

/** The number that an entry won permanently. */
export interface KeySlot {
  readonly incarnation: string;
  readonly number: number;
}
