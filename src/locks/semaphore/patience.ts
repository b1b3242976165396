// The pause between two attempts at a semaphore: a hint ends it early; without one the next attempt
// comes after `retryMs`, with jitter.
import type { Ports } from "../../ports/ports.ts";
import { Sleeper } from "../../ports/sleeper.ts";

/** Attempts are never closer together: a directory in which much happens hints all the time. */
const spacingMs = 5;

export class RetryPause {
  readonly #ports: Ports;
  readonly #retryMs: number;
  readonly #sleeper: Sleeper;
  readonly #stopWatching: () => void;
  #attemptedAtMs = -Infinity;

  /**
   * To be made before the attempt that it follows: what changes during the attempt is a hint, too.
   */
  constructor(ports: Ports, directory: string, retryMs: number) {
    this.#ports = ports;
    this.#retryMs = retryMs;
    this.#sleeper = new Sleeper(ports.clock);
    this.#stopWatching = ports.watch.start(directory, this.#sleeper.wake);
  }

  /** Called before each attempt: hints of before count no more. */
  begin(): void {
    this.#sleeper.forgetWakeUps();
    this.#attemptedAtMs = this.#ports.clock.monotonicMs();
  }

  /** Resolves when another attempt is worth it, or rejects with the signal's reason. */
  async pause(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#ports;
    // Between half and one and a half: waiters that came together drift apart.
    const end = await this.#sleeper.sleep(this.#retryMs * (0.5 + random.fraction()), signal);
    const leftMs = spacingMs - (clock.monotonicMs() - this.#attemptedAtMs);
    if (end === "woken" && leftMs > 0) await clock.sleep(leftMs, { signal });
  }

  end(): void {
    this.#stopWatching();
  }
}
