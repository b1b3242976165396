// BackupTarget: where backups are kept. It has only operations that a folder and a bucket have in common.

/** A file of a target. */
export interface TargetFile {
  readonly name: string;
  readonly size: number;
  /** When it was last written, by the clock of the target. */
  readonly atMs: number;
}

/** Names are relative to the target, of lower-case letters, digits, dots, dashes and slashes. */
export interface BackupTarget {
  /** For people: the location, without secrets. */
  readonly shown: string;
  /** Returns undefined if there is no such file. */
  find(name: string): Promise<Uint8Array | undefined>;
  /** Writes or replaces a file, whole. It is durable after `settle`. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Makes a file that another process has put, and perhaps not settled, durable with the next `settle`. */
  adopt(name: string): void;
  /** Makes everything durable that was put before. */
  settle(): Promise<void>;
  /** Lists the files below a folder, which ends in a slash. */
  list(folder: string): AsyncIterable<TargetFile>;
  /** No error if the file is gone. */
  remove(name: string): Promise<void>;
  /**
   * Gives a file another name, whole and durable, unless it is gone: then it returns false. `to` is a new name that no
   * other process uses.
   */
  move(from: string, to: string): Promise<boolean>;
  /** The time by the clock of the target. */
  nowMs(): Promise<number>;
  /** Returns true if nothing is there, not even another file. */
  isEmpty(): Promise<boolean>;
}
