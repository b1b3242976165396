// IndexSnapshot holds the keys of an index as of one moment, in order.
import { compareKeys, type IndexLine, type KeyLife } from "./index-line.ts";
import type { KeyRun } from "./key-run.ts";
import { mergeLines } from "./merge-lines.ts";

export class IndexSnapshot implements AsyncDisposable {
  readonly #announced: readonly IndexLine[];
  readonly #runs: readonly KeyRun[];

  /** `announced` must be sorted. */
  constructor(announced: readonly IndexLine[], runs: readonly KeyRun[]) {
    this.#announced = announced;
    this.#runs = runs;
  }

  /** Yields all keys from `bound` on, in order, each once. */
  async *from(bound: string): AsyncGenerator<string> {
    for await (const { key } of this.lives(bound)) yield key;
  }

  /** Like `from`, but yields each key with one of its lives. */
  async *lives(bound: string): AsyncGenerator<KeyLife> {
    const announced = this.#announced.slice(this.#find(bound));
    let last: string | undefined;
    for await (const some of mergeLines([[announced], ...this.#runs.map((run) => run.from(bound))]))
      for (const line of some) {
        // Skips the end line of a life: the line of its announcement yields the key.
        if (line.isEnded || line.key === last) continue;
        yield line;
        last = line.key;
      }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const run of this.#runs) await run[Symbol.asyncDispose]();
  }

  /** Returns the index of the first announced key that is not before `bound`. */
  #find(bound: string): number {
    let low = 0;
    let high = this.#announced.length;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (compareKeys(this.#announced[middle]?.key ?? "", bound) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
