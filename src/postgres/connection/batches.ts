// Group commit within this process: while one statement runs, calls for the next one gather.
import { holdfastError } from "../../errors.ts";
import type { Database } from "./database.ts";
import { isLost } from "./failure.ts";

export interface BatchLimits<Item> {
  readonly items: number;
  /**
   * The limit for all items of a batch together; a larger item is a batch of its own. Default: no
   * limit.
   */
  readonly bytes?: number;
  readonly bytesOf?: (item: Item) => number;
}

interface Call<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export class Batches<Item, Answer> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #limits: BatchLimits<Item>;
  #waiting: Call<Item, Answer>[] = [];
  #running: Promise<void> | undefined;

  /** `run` returns the answers of all items in order, or fails for all of them. */
  constructor(run: (items: readonly Item[]) => Promise<readonly Answer[]>, limits: BatchLimits<Item>) {
    this.#run = run;
    this.#limits = limits;
  }

  async call(item: Item): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#running ??= this.#runAll();
    });
  }

  /** Resolves when all calls have been answered. */
  async drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #runAll(): Promise<void> {
    // Calls made in this same turn of the event loop join the first batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#count());
      try {
        const answers = await this.#run(batch.map(({ item }) => item));
        for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = undefined;
  }

  #count(): number {
    const { items, bytes = Infinity, bytesOf = () => 0 } = this.#limits;
    let [count, sum] = [0, 0];
    for (const { item } of this.#waiting) {
      sum += bytesOf(item);
      if (count >= items || (count > 0 && sum > bytes)) break;
      count++;
    }
    return count;
  }
}

/**
 * Repeats `work` while the connection is lost. `work` must detect that an earlier attempt
 * succeeded. Throws OUTCOME_UNKNOWN if no answer comes in time.
 */
export async function untilAnswered<T>(database: Database, ids: readonly string[], work: () => Promise<T>): Promise<T> {
  let isInDoubt = false;
  try {
    return await database.patiently(async () => {
      try {
        return await work();
      } catch (error) {
        isInDoubt ||= isLost(error);
        throw error;
      }
    });
  } catch (error) {
    if (!isInDoubt) throw error;
    const path = database.location.shown;
    const message = `${path}: the answer of the server was lost, so the call may or may not count.`;
    throw holdfastError("OUTCOME_UNKNOWN", message, { path, ids }, error);
  }
}
