// A conversation that is archived, and the user's functions that produce summaries and memories
// from it.
import type { Cancel } from "../../common.ts";

/** A message of a session. Further properties are stored as well, and must be JSON. */
export interface Message {
  /** The author, such as "user" or "assistant". */
  role: string;
  /** The text of the message. */
  content: string;
  /** When it was written, as an ISO string. */
  at?: string | undefined;
  [field: string]: unknown;
}

/** Functions that process the archives of sessions. */
export interface SessionFunctions {
  /** Returns a summary of an archive. It may be slow: no lock is held. Default: none. */
  archiveSummary?: ((messages: readonly Message[], options: Cancel) => Promise<string>) | undefined;
  /**
   * Returns memories of an archive: files to write. It runs again after a crash, so the same
   * archive must return the same paths. Default: none.
   */
  extract?: ((archive: Archive, options: Cancel) => Promise<readonly { path: string; text: string }[]>) | undefined;
}

/** An archived part of a session. */
export interface Archive {
  /** The id of the session. */
  readonly session: string;
  /** Number of the archive, from 1. */
  readonly number: number;
  /** The `user` that was passed to `session`, if any. */
  readonly user?: string;
  /** The messages. */
  readonly messages: readonly Message[];
  /** The summary that `archiveSummary` returned, if any. */
  readonly summary?: string;
  /**
   * Why the record of the archive cannot be read. Its messages are not archived, or belong to the
   * next archive.
   */
  readonly damaged?: string;
}

/** A conversation whose messages can be archived. */
export interface Session {
  /** The id of the session. */
  readonly id: string;
  /**
   * Appends messages. They are durable when the promise resolves. Throws a TypeError for a message
   * that is not JSON.
   */
  append(...messages: readonly Message[]): Promise<void>;
  /**
   * Returns the messages that are not archived. A message with the role `holdfast:lost` replaces
   * messages that cannot be read.
   */
  messages(): Promise<readonly Message[]>;
  /**
   * Archives the messages without a lock, and queues the extraction of memories as a task. Returns
   * undefined if there are no messages.
   */
  commit(options?: Cancel): Promise<{ readonly archive: number; readonly task: string } | undefined>;
  /** Iterates over the archives, oldest first. */
  archives(): AsyncIterable<Archive>;
}
