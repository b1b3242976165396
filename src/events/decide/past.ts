// What can be said about the past of a log, for those who remember what they have read of it.
//
// Events never change, but two things can happen to them: tags are added to them, so that a query finds what it did not find before; and a subject is forgotten, so
// that their data cannot be read any more. Neither has a position. The rules, simplest first:
// - What was read counts as long as no tags were added anywhere in the log. After that everything is read again, whatever the tags were.
// - What was read from a log with subjects that can be forgotten is never written to disk: a copy in plain text would outlive the key.
import type { LogAccess } from "../log-access.ts";

export interface KnownPast {
  /**
   * Of all tags that were added to events later, as of now. A checksum and not a count: a log that was restored from a backup may have as many of them, and other ones.
   */
  tagChecksum(): Promise<string>;
  /** The log was opened with keys of subjects. */
  readonly mayForget: boolean;
}

/** Undefined when it is not known whether the past is still the same: then nothing that was read before may be used again. */
export async function findTagChecksum(access: LogAccess & Partial<KnownPast>): Promise<string | undefined> {
  return await access.tagChecksum?.();
}

export function mayKeepOnDisk(access: LogAccess & Partial<KnownPast>): boolean {
  return access.mayForget === false;
}
