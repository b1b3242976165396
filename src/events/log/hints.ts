// Waiting until the log has grown: hints wake up on a local disk, and looking again finds out everywhere.
import type { Cancel } from "../../common.ts";
import type { Ports } from "../../ports/ports.ts";

/** A hint may be lost, and a network mount gives none. */
const pollMs = { local: 50, network: 250, unknown: 250 };

export class Hints {
  readonly #ports: Ports;
  readonly #directory: string;
  readonly #waiting = new Set<() => void>();
  #stop: (() => void) | undefined;

  constructor(ports: Ports, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  /** Resolves when something may have changed since the call, at the latest after the poll interval. Rejects with the signal's reason. */
  async next({ signal }: Cancel = {}): Promise<void> {
    const { clock, watch, disk } = this.#ports;
    signal?.throwIfAborted();
    const over = new AbortController();
    const wake = (): void => over.abort("woken");
    this.#waiting.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    this.#stop ??= watch.start(this.#directory, () => this.wakeAll());
    try {
      await clock.sleep(pollMs[disk.volume.kind], { signal: over.signal });
    } catch (error) {
      if (error !== "woken") throw error;
    } finally {
      this.#waiting.delete(wake);
      signal?.removeEventListener("abort", wake);
      if (this.#waiting.size === 0) this.close();
    }
    signal?.throwIfAborted();
  }

  /** This process knows best when it has appended itself. */
  wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
