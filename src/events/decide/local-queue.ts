// The decisions of one process that were in each other's way stand in line: only those of other processes are met again.
//
// Two decisions are in each other's way if their queries share a tag, or a type where there is no tag. That is a guess, and
// nothing rests on it: the condition of each append decides.
import { Deadline } from "../../durable/wait/deadline.ts";
import type { Waiting } from "../../common.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Query } from "../model/query.ts";

export class DecisionQueue {
  readonly #clock: Clock;
  /** For each key the end of the last decision in line. */
  readonly #ends = new Map<string, Promise<void>>();
  #ended = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isBusy(keys: readonly string[]): boolean {
    return keys.some((key) => this.#ends.has(key));
  }

  /**
   * Waits for all that came before with one of these keys, as long as one of the line comes to its end every `timeoutMs`: a
   * decision that waits for another one of its own would wait for ever. Gives what to call at the end. Rejects with the
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
      // The next one in line waits for this one alone, and so for all before it.
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

/** Nobody sees it: it only ends a wait. */
const tooLong = "too long";

const lines = new WeakMap<LogAccess, DecisionQueue>();

/** One for each opened log. */
export function lineOf(access: LogAccess): DecisionQueue {
  const line = lines.get(access) ?? new DecisionQueue(access.ports.clock);
  lines.set(access, line);
  return line;
}

/** What two decisions have in common if they may be in each other's way. */
export function lineKeysOf(query: Query): readonly string[] {
  const keys = itemsOf(query).flatMap(({ types, tags }) => {
    if (tags.length > 0) return tags.map((tag) => `tag ${tag}`);
    return types.length > 0 ? types.map((type) => `type ${type}`) : ["all"];
  });
  return [...new Set(keys)];
}
