// Hashes large bodies beside the thread that receives them.

/** Hashes large bodies in other threads. */
export interface Hasher {
  /** Starts to hash a body. Returns undefined if no thread is free: the caller hashes it itself. */
  start(algorithms: readonly ("md5" | "sha256")[]): Hashing | undefined;
}

/** The hashing of one body. It ends with `end` or `close`. */
export interface Hashing {
  /** Returns memory that the thread no longer reads. Rejects if the thread has failed. */
  block(): Promise<Uint8Array>;
  /** Hashes the first `length` bytes of the last block. */
  update(length: number): void;
  /** Returns the digests in hex, in the order of the algorithms. Rejects if the thread has failed. */
  end(): Promise<readonly string[]>;
  /** Gives up the body. Does nothing after `end`. */
  close(): void;
}
