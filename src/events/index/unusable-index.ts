// Says that an index file cannot be used, whatever the reason: never seen by a caller, because then the log itself is asked.

export class UnusableIndex extends Error {
  /** Of the file: `<first segment>-<last segment>`. */
  readonly index: string;

  constructor(index: string, why: string, cause?: unknown) {
    super(`The index ${index} cannot be used: ${why}.`, { cause });
    this.index = index;
  }
}
