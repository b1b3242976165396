// Signals: hints that something changed. Within this process they arrive at once, and between
// processes by NOTIFY. A hint proves nothing and may be missing, so waiters also poll.
import type { Clock } from "../ports/clock.ts";
import type { Watch } from "../ports/watch.ts";
import type { Database } from "./connection/database.ts";

/** One channel for all stores of a database: the payload names the change. */
const channel = "hf_hint";
const coalescingMs = 10;

export class Signals implements Watch {
  readonly channel: string = channel;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #pending = new Set<string>();
  readonly #firstActions = new Set<() => void>();

  start(path: string, onHint: () => void): () => void {
    const listeners = this.#listeners.get(path) ?? new Set();
    this.#listeners.set(path, listeners.add(onHint));
    for (const action of [...this.#firstActions]) action();
    this.#firstActions.clear();
    return () => {
      listeners.delete(onHint);
      if (listeners.size === 0 && this.#listeners.get(path) === listeners) this.#listeners.delete(path);
    };
  }

  /** Calls `action` once, when there is a listener. Returns a function that cancels this. */
  onFirstListener(action: () => void): () => void {
    if (this.#listeners.size > 0) {
      action();
      return () => undefined;
    }
    this.#firstActions.add(action);
    return () => this.#firstActions.delete(action);
  }

  /** Wakes the listeners of this process. */
  wake(path: string): void {
    for (const onHint of this.#listeners.get(path) ?? []) onHint();
  }

  /** Wakes the listeners of other processes soon, once for all changes within a short time. */
  notifyLater(database: Pick<Database, "once" | "literal">, clock: Clock, path: string): void {
    if (this.#pending.has(path)) return;
    this.#pending.add(path);
    const notify = async (): Promise<void> => {
      await clock.sleep(coalescingMs, { background: true });
      this.#pending.delete(path);
      await database.once(this.notify(database.literal(path)));
    };
    // A hint may be missing.
    notify().catch(() => undefined);
  }

  /**
   * Returns a statement that wakes the listeners of other processes when its transaction is
   * committed.
   */
  notify(pathLiteral: string): string {
    return `select pg_notify('${channel}', ${pathLiteral})`;
  }
}
