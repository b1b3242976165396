// Keys of subjects whose data can be forgotten: kept outside the log, so that a log that nobody may rewrite can still lose its secrets.

export interface SubjectKeys {
  find(subject: string): Promise<Uint8Array | undefined>;
  create(subject: string): Promise<Uint8Array>;
  /** After this, what was encrypted for the subject can be read by nobody. */
  forget(subject: string): Promise<void>;
}
