// Paced: a cached value that is reloaded rarely enough to keep loading cheap, however large the
// store is.

export interface Pace {
  /** A value stays fresh for this long. */
  readonly everyMs: number;
  /** A value also stays fresh for this many times the processor time of its load. */
  readonly factor: number;
  /** No value is older than this. Default: a minute. */
  readonly ageMsMax?: number;
}

/** Each value costs at most one hundredth of one core, unless it would be older than a minute. */
export const calm: Pace = { everyMs: 1500, factor: 100 };
/** Each value costs at most one hundredth of one core, however old it becomes. */
export const calmest: Pace = { ...calm, ageMsMax: Infinity };
const ageMsMaxDefault = 60_000;

export class Paced<T> {
  readonly #load: () => Promise<T>;
  readonly #pace: Pace;
  #value: Promise<T> | undefined;
  #freshUntilMs = 0;
  #isLoading = false;
  #isFirst = true;

  constructor(load: () => Promise<T>, pace: Pace = calm) {
    this.#load = load;
    this.#pace = pace;
  }

  /** Returns the value. All callers share one load; the next call repeats a failed one. */
  async get(): Promise<T> {
    if (this.#value !== undefined && (this.#isLoading || performance.now() < this.#freshUntilMs))
      return await this.#value;
    const before = process.cpuUsage();
    this.#isLoading = true;
    this.#value = this.#load();
    try {
      const value = await this.#value;
      const { everyMs, factor, ageMsMax = ageMsMaxDefault } = this.#pace;
      // Only processor time counts: waiting for a slow disk costs nothing. Other work of this
      // process counts too, which only makes loads rarer.
      const { user, system } = process.cpuUsage(before);
      // The first load opens what is loaded, and compiles the code: it says nothing about the next ones.
      const costMs = this.#isFirst ? 0 : (user + system) / 1000;
      this.#isFirst = false;
      this.#freshUntilMs = performance.now() + Math.min(Math.max(everyMs, factor * costMs), ageMsMax);
      return value;
    } catch (error) {
      this.#value = undefined;
      throw error;
    } finally {
      this.#isLoading = false;
    }
  }

  /** Makes the next call reload the value; called after an action that changed it. */
  expire(): void {
    this.#freshUntilMs = 0;
  }
}
