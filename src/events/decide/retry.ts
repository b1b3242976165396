// How long a decision is tried again after a conflict, and what it waits for in between.
import type { Cancel } from "../../common.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { Query } from "../model/query.ts";
import { lineKeysOf, lineOf, type DecisionQueue } from "./local-queue.ts";

/**
 * Short, and no longer for one that has lost often: the gate of the log lets processes in one after the other, so whoever comes
 * back at once has its turn. A pause that grew kept those waiting who had waited longest, until their time was up.
 */
const pauseMsMax = 20;

export interface PerseveranceOptions extends Cancel {
  readonly timeoutMs: number;
  readonly retries: number;
}

export class DecisionRetry {
  readonly #access: LogAccess;
  readonly #line: DecisionQueue;
  readonly #keys: readonly string[];
  readonly #options: PerseveranceOptions;
  #untilMs: number;
  #retries = 0;
  #leave: (() => void) | undefined;

  constructor(access: LogAccess, query: Query | undefined, options: PerseveranceOptions) {
    this.#access = access;
    this.#line = lineOf(access);
    this.#keys = query === undefined ? [] : lineKeysOf(query);
    this.#options = options;
    this.#untilMs = access.ports.clock.monotonicMs() + options.timeoutMs;
  }

  /** Waits for those that stand in line already: they would be in the way, and this one in theirs. */
  async begin(): Promise<void> {
    if (this.#line.isBusy(this.#keys)) await this.#standInLine();
  }

  /** Resolves when it is to be tried again. Throws `conflict` when that was for the last time. */
  async waitAfter(conflict: unknown): Promise<void> {
    const { clock, random } = this.#access.ports;
    const { retries, signal } = this.#options;
    const leftMs = this.#untilMs - clock.monotonicMs();
    if (leftMs <= 0 || ++this.#retries > retries) throw conflict;
    // Then the others of this process wait, and a pause is only for those of other processes: by chance, so that those who
    // have met in one conflict do not meet in the next.
    if (this.#leave === undefined) await this.#standInLine();
    else await clock.sleep(Math.min(leftMs, random.fraction() * pauseMsMax), { signal });
  }

  end(): void {
    this.#leave?.();
  }

  async #standInLine(): Promise<void> {
    const { clock } = this.#access.ports;
    const sinceMs = clock.monotonicMs();
    this.#leave = await this.#line.enter(this.#keys, this.#options);
    this.#untilMs += clock.monotonicMs() - sinceMs;
  }
}
