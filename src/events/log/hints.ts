// Waiting until the log has grown: hints wake up on a local disk, and looking again finds out everywhere.
import type { Cancel } from "../../common.ts";
import type { Ports } from "../../ports/ports.ts";

/** A hint may be lost, and a network mount gives none. */
const pollMs = { local: 50, network: 250, unknown: 250 };

/** Nobody sees it: it only ends a sleep. */
const woken = "woken";

export class Hints {
  readonly #ports: Ports;
  readonly #directory: string;
  readonly #waiting = new Set<() => void>();
  #stop: (() => void) | undefined;

  constructor(ports: Ports, directory: string) {
    this.#ports = ports;
    this.#directory = directory;
  }

  /** What `look` finds, or undefined after something may have changed, at the latest after the poll interval. Rejects with the signal's reason. */
  async nextUnless<T>(look: () => Promise<T | undefined>, { signal }: Cancel = {}): Promise<T | undefined> {
    const { clock, watch, disk } = this.#ports;
    signal?.throwIfAborted();
    const over = new AbortController();
    const wake = (): void => over.abort(woken);
    // Listening before looking: what comes in between is not missed.
    this.#waiting.add(wake);
    signal?.addEventListener("abort", wake, { once: true });
    this.#stop ??= watch.start(this.#directory, () => this.wakeAll());
    try {
      const found = await look();
      if (found !== undefined) return found;
      if (!over.signal.aborted) await clock.sleep(pollMs[disk.volume.kind], { signal: over.signal });
    } catch (error) {
      if (error !== woken) throw error;
    } finally {
      this.#waiting.delete(wake);
      signal?.removeEventListener("abort", wake);
    }
    signal?.throwIfAborted();
    return undefined;
  }

  /** This process knows best when it has appended itself. */
  wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }

  /** The watch stays between two waits: whoever has waited once will wait again. */
  close(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
