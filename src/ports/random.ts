// Chance, from the operating system in production and from a seed in simulations.

export interface Random {
  /** Unpredictable bytes; two processes never get the same sixteen. */
  bytes(length: number): Uint8Array;
  /** A number from 0 up to but not including 1, for jitter. */
  fraction(): number;
}
