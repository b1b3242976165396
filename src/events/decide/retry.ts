// Retries of a decision after conflicts: for how long, and what it waits for before each attempt.
import type { Cancel } from "../../common.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { Query } from "../model/query.ts";
import { queueKeysOf, queueOf, type DecisionQueue } from "./decision-queue.ts";

/**
 * Short, and constant after many conflicts. The gate of the log admits processes in order, so a process that retries
 * at once gets its turn. With growing pauses, the processes that had lost most often waited longest and timed out.
 */
const pauseMsMax = 20;

export interface RetryOptions extends Cancel {
  readonly timeoutMs: number;
  readonly retries: number;
}

export class DecisionRetry {
  readonly #access: LogAccess;
  readonly #queue: DecisionQueue;
  readonly #keys: readonly string[];
  readonly #options: RetryOptions;
  #untilMs: number;
  #retries = 0;
  #leave: (() => void) | undefined;

  constructor(access: LogAccess, query: Query | undefined, options: RetryOptions) {
    this.#access = access;
    this.#queue = queueOf(access);
    this.#keys = query === undefined ? [] : queueKeysOf(query);
    this.#options = options;
    this.#untilMs = access.ports.clock.monotonicMs() + options.timeoutMs;
  }

  /** Waits for queued decisions that this one would conflict with. */
  async begin(): Promise<void> {
    if (this.#queue.isBusy(this.#keys)) await this.#enterQueue();
  }

  /** Resolves when it is time for the next attempt. Throws `conflict` if there is none. */
  async waitAfter(conflict: unknown): Promise<void> {
    const { clock, random } = this.#access.ports;
    const { retries, signal } = this.#options;
    const leftMs = this.#untilMs - clock.monotonicMs();
    if (leftMs <= 0 || ++this.#retries > retries) throw conflict;
    // Decisions of this process are now serialized by the queue. The random pause is for those of other processes:
    // two that collided once should not collide again.
    if (this.#leave === undefined) await this.#enterQueue();
    else await clock.sleep(Math.min(leftMs, random.fraction() * pauseMsMax), { signal });
  }

  end(): void {
    this.#leave?.();
  }

  async #enterQueue(): Promise<void> {
    const { clock } = this.#access.ports;
    const sinceMs = clock.monotonicMs();
    this.#leave = await this.#queue.enter(this.#keys, this.#options);
    this.#untilMs += clock.monotonicMs() - sinceMs;
  }
}
