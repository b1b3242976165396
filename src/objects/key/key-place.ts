// What the chains of keys stand on: where entries are staged, where directories are prepared, and
// how names are made durable.
import type { Staging } from "../../durable/publish/staging.ts";

export interface KeyPlace {
  /** Of single files. */
  readonly staging: Staging;
  /**
   * The directory in which the session that has staged this file prepares directories. Swept when
   * the holder of that session is dead, as the file is.
   */
  readonly prepared: (temp: string) => Promise<string>;
  /** Makes the names in these directories durable, with all other callers that wait for the same. */
  readonly sync: (...directories: readonly string[]) => Promise<void>;
  /** Default 256. */
  readonly slotsPerBlock?: number | undefined;
}

/** A file that is to become a slot: staged once, and tried under one number after the other. */
export interface StagedEntry {
  readonly temp: string;
  /** The record at its beginning, which no other file has. */
  readonly proof: Uint8Array;
}

/** Where an entry got its place for good. */
export interface Placed {
  readonly incarnation: string;
  readonly number: number;
}
