// Patience: how somebody waits for a lock between two attempts. A hint ends the pause early;
// without one it looks again after a while, with jitter.
import type { Ports } from "../../ports/ports.ts";

/** Attempts are never closer together: a directory in which much happens hints all the time. */
const spacingMs = 5;

export class RetryPause {
  readonly #ports: Ports;
  readonly #retryMs: number;
  readonly #stopWatching: () => void;
  #isHinted = false;
  #attemptedAtMs = -Infinity;
  #wake: () => void = () => undefined;

  /**
   * To be made before the attempt that it is to follow: what changes during the attempt is a hint,
   * too.
   */
  constructor(ports: Ports, directory: string, retryMs: number) {
    this.#ports = ports;
    this.#retryMs = retryMs;
    this.#stopWatching = ports.watch.start(directory, () => {
      this.#isHinted = true;
      this.#wake();
    });
  }

  /** Called before each attempt: hints of before count no more. */
  begin(): void {
    this.#isHinted = false;
    this.#attemptedAtMs = this.#ports.clock.monotonicMs();
  }

  /** Until it is worth another attempt, or rejects with the signal's reason. */
  async pause(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#ports;
    // Between half and one and a half: waiters that came together drift apart.
    if (!this.#isHinted) await this.#sleep(this.#retryMs * (0.5 + random.fraction()), signal);
    const leftMs = spacingMs - (clock.monotonicMs() - this.#attemptedAtMs);
    if (this.#isHinted && leftMs > 0) await clock.sleep(leftMs, { signal });
  }

  end(): void {
    this.#stopWatching();
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const hint = new AbortController();
    this.#wake = () => hint.abort();
    try {
      await this.#ports.clock.sleep(ms, { signal: AbortSignal.any([signal, hint.signal]) });
    } catch (error) {
      if (signal.aborted || !hint.signal.aborted) throw error;
    } finally {
      this.#wake = () => undefined;
    }
  }
}
