// Changes that are not in the lock table yet: requests whose hold file is gone, requests to drop, and redos that are
// done. Every append omits these entries, and then forgets them.
import { isHoldfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TableRequest, TableState } from "./request.ts";

const retryEveryMs = 1000;

export interface PendingTableChangesOptions {
  readonly clock: Clock;
  /** Appends no change of its own, only the omissions. */
  readonly append: () => Promise<unknown>;
  /** Identifies the state of a request that was judged, because a receiver may have taken it since. */
  readonly judgedState: (request: TableRequest) => string;
}

/** The entries that one append omits. */
export interface PendingState {
  readonly state: TableState;
  /** Requests whose hold files still exist. */
  readonly dropped: readonly TableRequest[];
  /** Call it when the append counts: then the table reflects all omissions. */
  readonly forget: () => void;
}

export class PendingTableChanges {
  readonly #options: PendingTableChangesOptions;
  /** Requests whose hold files are gone. */
  readonly #over = new Set<string>();
  /** Requests to drop because their holders are dead or they were broken, each with the state that was judged. */
  readonly #condemned = new Map<string, string>();
  /** Requests of this process to drop in any state: they may be in the table, but no caller wants them. */
  readonly #unwanted = new Set<string>();
  /** Redos that are done. */
  readonly #done = new Set<string>();
  #isRetrying = false;

  constructor(options: PendingTableChangesOptions) {
    this.#options = options;
  }

  isOver(id: string): boolean {
    return this.#over.has(id);
  }

  noteOver(id: string): void {
    this.#over.add(id);
  }

  isDone(redo: string): boolean {
    return this.#done.has(redo);
  }

  noteDone(redo: string): void {
    this.#done.add(redo);
  }

  get hasCondemned(): boolean {
    return this.#condemned.size > 0;
  }

  condemn(request: TableRequest): void {
    this.#condemned.set(request.id, this.#options.judgedState(request));
  }

  /**
   * Marks a request of this process that may be in the table: the next append drops it, and its hold file is removed
   * then.
   */
  noteUnwanted(id: string): void {
    this.#over.delete(id);
    this.#unwanted.add(id);
  }

  isToDrop(request: TableRequest): boolean {
    return this.#unwanted.has(request.id) || this.#condemned.get(request.id) === this.#options.judgedState(request);
  }

  omitFrom({ requests, redos }: TableState): PendingState {
    const hasDrops = this.#hasDrops;
    return {
      state: {
        requests: requests.filter((request) => !this.#over.has(request.id) && !(hasDrops && this.isToDrop(request))),
        redos: redos.filter(({ id, request }) => !this.#done.has(id) && !this.#over.has(request)),
      },
      dropped: hasDrops ? requests.filter((request) => this.isToDrop(request)) : [],
      forget: this.#forgetLater(),
    };
  }

  /**
   * Returns a function that forgets what is pending now. Anything that becomes pending later may be in the table, and
   * stays pending.
   */
  #forgetLater(): () => void {
    const over = [...this.#over];
    const done = [...this.#done];
    const unwanted = [...this.#unwanted];
    const condemned = [...this.#condemned];
    return () => {
      for (const id of over) this.#over.delete(id);
      for (const id of done) this.#done.delete(id);
      for (const id of unwanted) this.#unwanted.delete(id);
      // It was dropped meanwhile, or changed since it was judged.
      for (const [id, judged] of condemned) if (this.#condemned.get(id) === judged) this.#condemned.delete(id);
    };
  }

  /**
   * Appends in the background until nothing is left to drop, because other processes wait for that. Stops with this
   * process.
   */
  async retry(): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    while (this.#hasDrops) {
      await this.#options.clock.sleep(retryEveryMs, { background: true });
      try {
        if (this.#hasDrops) await this.#options.append();
      } catch (error) {
        if (isHoldfastError(error, "CLOSED")) return;
      }
    }
    this.#isRetrying = false;
  }

  get #hasDrops(): boolean {
    return this.#unwanted.size > 0 || this.#condemned.size > 0;
  }
}
