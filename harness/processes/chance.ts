// Random choices from a seed: the same seed makes the same choices. The timing of real processes between two choices
// still varies.

export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Returns a number from 0 up to but not including 1. */
  fraction(): number {
    // mulberry32: small, and uniform in all its bits.
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  between(min: number, max: number): number {
    return min + this.fraction() * (max - min);
  }

  happens(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** Returns undefined if there are no choices. */
  pick<T>(choices: readonly T[]): T | undefined {
    return choices[Math.floor(this.fraction() * choices.length)];
  }
}
