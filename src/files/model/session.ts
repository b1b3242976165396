// A conversation that is archived, and the user's functions that make summaries and memories of it.
import type { Cancel } from "../../common.ts";

export interface Message {
  role: string;
  content: string;
  at?: string | undefined;
  [field: string]: unknown;
}

export interface SessionFunctions {
  /** Summary of an archive. Slow; no lock is held. */
  archiveSummary?: ((messages: readonly Message[], options: Cancel) => Promise<string>) | undefined;
  /**
   * Memories out of an archive: files to write. Run again after a crash, so the same archive must give the same
   * paths.
   */
  extract?: ((archive: Archive, options: Cancel) => Promise<readonly { path: string; text: string }[]>) | undefined;
}

export interface Archive {
  readonly session: string;
  readonly number: number;
  readonly user?: string;
  readonly messages: readonly Message[];
  readonly summary?: string;
}

export interface Session {
  readonly id: string;
  append(...messages: readonly Message[]): Promise<void>;
  messages(): Promise<readonly Message[]>;
  /** Archives and clears without a lock, then leaves the extraction as a task. Undefined when there was nothing. */
  commit(options?: Cancel): Promise<{ readonly archive: number; readonly task: string } | undefined>;
  archives(): AsyncIterable<Archive>;
}
