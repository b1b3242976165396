// A progress note that a handler may replace as often as it likes: the last one counts.
import type { Clock } from "../../ports/clock.ts";

/** Minimum time between two writes of one delivery. */
const pauseMs = 500;

export class PacedNote {
  readonly #clock: Clock;
  readonly #put: (note: unknown) => Promise<void>;
  #writtenAtMs = -Infinity;
  /** The note to write when the pause is over. */
  #next: { readonly note: unknown } | undefined;
  #stopAlarm: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasEnded = false;

  constructor(clock: Clock, put: (note: unknown) => Promise<void>) {
    this.#clock = clock;
    this.#put = put;
  }

  /**
   * Writes at once, or after the pause; then it writes only the last note. Drops a note that cannot
   * be written.
   */
  async write(note: unknown): Promise<void> {
    const leftMs = this.#writtenAtMs + pauseMs - this.#clock.monotonicMs();
    if (leftMs <= 0) return await this.#replace(note);
    this.#next = { note };
    this.#stopAlarm ??= this.#clock.alarm(leftMs, () => {
      this.#stopAlarm = undefined;
      if (this.#next !== undefined) this.#replace(this.#next.note).catch(() => undefined);
    });
  }

  /** Nothing is written after it resolves. Returns whether something was. */
  async end(): Promise<boolean> {
    this.#hasEnded = true;
    this.#stopAlarm?.();
    await this.#writing.catch(() => undefined);
    return this.#writtenAtMs !== -Infinity;
  }

  async #replace(note: unknown): Promise<void> {
    this.#next = undefined;
    this.#writtenAtMs = this.#clock.monotonicMs();
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(async () => {
        if (!this.#hasEnded) await this.#put(note);
      });
    await this.#writing;
  }
}
