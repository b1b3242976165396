// The pause between two attempts at a semaphore. A hint ends it early; without one the next attempt comes after
// `retryMs`, with jitter.
import type { Ports } from "../../ports/ports.ts";
import { Sleeper } from "../../ports/sleeper.ts";

/** The shortest pause between attempts: in a busy directory hints arrive all the time. */
const spacingMs = 5;

export class RetryPause {
  readonly #ports: Ports;
  readonly #retryMs: number;
  readonly #sleeper: Sleeper;
  readonly #stopWatching: () => void;
  #attemptedAtMs = -Infinity;

  /** Create it before the attempt after which it pauses, so that a change during the attempt counts as a hint. */
  constructor(ports: Ports, directory: string, retryMs: number) {
    this.#ports = ports;
    this.#retryMs = retryMs;
    this.#sleeper = new Sleeper(ports.clock);
    this.#stopWatching = ports.watch.start(directory, this.#sleeper.wake);
  }

  /** Call it before each attempt: earlier hints no longer count. */
  begin(): void {
    this.#sleeper.forgetWakeUps();
    this.#attemptedAtMs = this.#ports.clock.monotonicMs();
  }

  /** Resolves when it is time for another attempt. Rejects with the signal's reason. */
  async pause(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#ports;
    // Between half and one and a half times, so that waiters that started together drift apart.
    const end = await this.#sleeper.sleep(this.#retryMs * (0.5 + random.fraction()), signal);
    const leftMs = spacingMs - (clock.monotonicMs() - this.#attemptedAtMs);
    if (end === "woken" && leftMs > 0) await clock.sleep(leftMs, { signal });
  }

  end(): void {
    this.#stopWatching();
  }
}
