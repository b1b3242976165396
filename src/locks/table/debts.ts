// Requests that this process has still to end: their hold files could not be removed, or they may be in the list although the answer was lost; and verdicts on those of others that
// could not be written.
import { isHoldfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";

/** How often it is tried again. */
const payEveryMs = 1000;

export class RequestsToRemove {
  readonly #clock: Clock;
  readonly #append: () => Promise<unknown>;
  readonly #hasVerdicts: () => boolean;
  readonly #owed = new Set<string>();
  #isPaying = false;

  /** Each append of this process drops all that it finds here, and settles it. */
  constructor(clock: Clock, append: () => Promise<unknown>, hasVerdicts: () => boolean) {
    this.#clock = clock;
    this.#append = append;
    this.#hasVerdicts = hasVerdicts;
  }

  get ids(): readonly string[] {
    return [...this.#owed];
  }

  has(id: string): boolean {
    return this.#owed.has(id);
  }

  add(id: string): void {
    this.#owed.add(id);
  }

  settle(ids: readonly string[]): void {
    for (const id of ids) this.#owed.delete(id);
  }

  /** In the background: others wait for it. It is tried again until it is done, or until this process ends, and it ends with it. */
  async pay(): Promise<void> {
    if (this.#isPaying) return;
    this.#isPaying = true;
    while (this.#isOwing()) {
      await this.#clock.sleep(payEveryMs, { background: true });
      try {
        if (this.#isOwing()) await this.#append();
      } catch (error) {
        if (isHoldfastError(error, "CLOSED")) return;
      }
    }
    this.#isPaying = false;
  }

  #isOwing(): boolean {
    return this.#owed.size > 0 || this.#hasVerdicts();
  }
}
