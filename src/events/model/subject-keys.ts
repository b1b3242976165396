// Keys of subjects whose data can be forgotten: kept outside the log, so that a log that nobody may rewrite can still lose its secrets.

/** `openSubjectKeys` has them in a directory; a vault or a database will do as well. Keys have 32 random bytes. */
export interface SubjectKeys {
  /** Asked at each read of something personal, so that what is forgotten anywhere is forgotten everywhere. Undefined: it is gone, or never was. */
  find(subject: string): Promise<Uint8Array | undefined>;
  /** Asked when something personal is appended and `find` knows no key. All who ask at once must get the same one, durable when it resolves. */
  create(subject: string): Promise<Uint8Array>;
  /** After this, what was encrypted for the subject can be read by nobody. */
  forget(subject: string): Promise<void>;
}
