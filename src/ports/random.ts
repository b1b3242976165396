// Randomness: from the operating system in production, from a seed in simulations.

/** Randomness: of the operating system in production, of a seed in simulations. */
export interface Random {
  /** Returns unpredictable bytes; two processes never get the same sixteen. */
  bytes(length: number): Uint8Array;
  /** Returns a number from 0 up to, but not including, 1, for jitter. */
  fraction(): number;
}
