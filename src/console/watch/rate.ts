// Rate: how fast a counter grew lately, from the values that samples have seen.

/** Long enough for a smooth figure, short enough for a recent one. */
const windowMs = 30_000;

export class Rate {
  readonly #seen: { readonly atMs: number; readonly value: number }[] = [];

  /** Adds a value, and returns the growth for each second; undefined for the first value. */
  add(value: number, atMs: number): number | undefined {
    const last = this.#seen.at(-1);
    // A log that was restored from a copy is shorter: what was counted before says nothing about it.
    if (last !== undefined && value < last.value) this.#seen.length = 0;
    this.#seen.push({ atMs, value });
    // One value before the window stays, so that a counter that is seldom looked at has a rate too.
    while (this.#seen.length > 2 && atMs - (this.#seen[1]?.atMs ?? atMs) >= windowMs) this.#seen.shift();
    const [first] = this.#seen;
    if (first === undefined || atMs <= first.atMs) return undefined;
    return (value - first.value) / ((atMs - first.atMs) / 1000);
  }
}
