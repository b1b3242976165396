// The queue of decisions in one process: after a conflict, decisions that may conflict run one
// after the other.
//
// Two decisions may conflict if their queries share a tag, or a type where there is no tag. That is
// a guess, and no guarantee depends on it: the condition of each append decides.
import { Deadline } from "../../durable/wait/deadline.ts";
import type { Waiting } from "../../common.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Query } from "../model/query.ts";

export class DecisionQueue {
  readonly #clock: Clock;
  /** By key, the end of the last decision in the queue. */
  readonly #ends = new Map<string, Promise<void>>();
  /** Grows when a decision leaves the queue. */
  #ended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isBusy(keys: readonly string[]): boolean {
    return keys.some((key) => this.#ends.has(key));
  }

  /**
   * Waits for all earlier decisions that have one of these keys, and returns the function that
   * leaves the queue. If none ends within `timeoutMs`, the decision proceeds out of turn: a
   * decision that starts another one inside itself would otherwise wait forever. Rejects with the
   * signal's reason.
   */
  async enter(keys: readonly string[], { timeoutMs, signal }: Waiting): Promise<() => void> {
    const before = Promise.all(keys.map(async (key) => await this.#ends.get(key)));
    let end = (): void => undefined;
    const mine = new Promise<void>((resolve) => (end = resolve));
    for (const key of keys) this.#ends.set(key, mine);
    const leave = (): void => {
      for (const key of keys) if (this.#ends.get(key) === mine) this.#ends.delete(key);
      this.#ended++;
      end();
    };
    try {
      for (let seen = -1; seen !== this.#ended;) {
        seen = this.#ended;
        if (await this.#isOverInTime(before, { timeoutMs, signal })) return leave;
      }
    } catch (error) {
      // The next decision waits for this one, and so for all before it.
      void before.then(leave);
      throw error;
    }
    void before.then(leave);
    return () => undefined;
  }

  async #isOverInTime(before: Promise<unknown>, { timeoutMs, signal }: Waiting): Promise<boolean> {
    const deadline = new Deadline(this.#clock, { timeoutMs, signal, timedOut: () => tooLong });
    try {
      deadline.throwIfOver();
      return await new Promise<boolean>((resolve, reject) => {
        deadline.onOver(() => (deadline.reason === tooLong ? resolve(false) : reject(deadline.reason)));
        void before.then(() => resolve(true));
      });
    } finally {
      deadline.cancel();
    }
  }
}

/** The reason that ends a wait; no caller sees it. */
const tooLong = "too long";

const queues = new WeakMap<LogAccess, DecisionQueue>();

/** Returns the queue of an opened log. */
export function queueOf(access: LogAccess): DecisionQueue {
  const queue = queues.get(access) ?? new DecisionQueue(access.ports.clock);
  queues.set(access, queue);
  return queue;
}

/** Two decisions that may conflict have a key in common. */
export function queueKeysOf(query: Query): readonly string[] {
  const keys = itemsOf(query).flatMap(({ types, tags }) => {
    if (tags.length > 0) return tags.map((tag) => `tag ${tag}`);
    return types.length > 0 ? types.map((type) => `type ${type}`) : ["all"];
  });
  return [...new Set(keys)];
}
