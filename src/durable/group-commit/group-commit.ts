// Group commit: callers queue, one flusher commits for all of them, and nobody holds the queue while it does.
import { holdfastError } from "../../errors.ts";

export interface GroupCommitOptions<Item, Result> {
  /** Makes a group durable and gives one result for each of its items, in order. Rejecting fails the whole group, for good. */
  readonly commit: (group: readonly Item[]) => Promise<readonly Result[]>;
  /** Default 1024. */
  readonly groupSizeMax?: number | undefined;
  /** Callers beyond this many are refused: a disk that hangs must not eat the memory too. Default 100_000. */
  readonly queueSizeMax?: number | undefined;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  #queue: Waiting<Item, Result>[] = [];
  #flushing: Promise<void> | undefined;
  #failure: { readonly cause: unknown } | undefined;

  constructor(options: GroupCommitOptions<Item, Result>) {
    const { groupSizeMax = 1 } = options;
    // With groups of nothing the queue would never end.
    if (!(groupSizeMax >= 1)) throw new RangeError(`groupSizeMax must be at least 1, not ${groupSizeMax}.`);
    this.#options = options;
  }

  /** Resolves when the item is durable. CLOSED after a group has failed: what it wrote is in doubt, so nothing may be built on it. */
  async add(item: Item): Promise<Result> {
    const { queueSizeMax = 100_000 } = this.#options;
    if (this.#failure !== undefined) throw closed(this.#failure.cause);
    if (this.#queue.length >= queueSizeMax) {
      const message = `${queueSizeMax} callers are waiting for the disk already.`;
      throw holdfastError("TOO_LARGE", message, { limit: queueSizeMax, actual: this.#queue.length + 1 });
    }
    return await new Promise<Result>((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Resolves when all that was added before is durable or has failed. */
  async drained(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
  }

  async #flush(): Promise<void> {
    // Callers of this very moment join the first group.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#commitGroup(this.#queue.splice(0, this.#options.groupSizeMax ?? 1024));
    this.#flushing = undefined;
  }

  async #commitGroup(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      if (this.#failure !== undefined) throw closed(this.#failure.cause);
      const results = await this.#options.commit(group.map(({ item }) => item));
      group.forEach(({ resolve }, index) => resolve(results[index] as Result));
    } catch (error) {
      this.#failure ??= { cause: error };
      for (const { reject } of group) reject(error);
    }
  }
}

function closed(cause: unknown): Error {
  return holdfastError(
    "CLOSED",
    "An earlier write failed, so this file is closed. Open it again: what was acknowledged is there.",
    {},
    cause,
  );
}
