// Facts not yet in the lock table: requests whose hold file is gone, requests to drop, redos done.
// Every append omits them, then forgets them.
import { isHoldfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TableRequest, TableState } from "./request.ts";

const retryEveryMs = 1000;

export interface PendingTableChangesOptions {
  readonly clock: Clock;
  /** An append that changes nothing but what every append omits. */
  readonly append: () => Promise<unknown>;
  /**
   * What a judgement is about: the state of a request, because a receiver may have taken the
   * request since.
   */
  readonly judgedState: (request: TableRequest) => string;
}

/** What one append omits. */
export interface Omission {
  readonly state: TableState;
  /** Their hold files are still there. */
  readonly dropped: readonly TableRequest[];
  readonly unwanted: readonly string[];
}

export class PendingTableChanges {
  readonly #options: PendingTableChangesOptions;
  /** Requests whose hold files are gone. */
  readonly #over = new Set<string>();
  /**
   * Requests to drop because their holders are dead or they were broken, each with the state that
   * was judged.
   */
  readonly #condemned = new Map<string, string>();
  /**
   * Requests of this process to drop in whatever state: they may be in the table, and no caller
   * wants them.
   */
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
   * A request of this process that may stand: the next append drops it, and its hold file goes
   * then.
   */
  noteUnwanted(id: string): void {
    this.#over.delete(id);
    this.#unwanted.add(id);
  }

  isToDrop(request: TableRequest): boolean {
    return this.#unwanted.has(request.id) || this.#condemned.get(request.id) === this.#options.judgedState(request);
  }

  omitFrom({ requests, redos }: TableState): Omission {
    return {
      state: {
        requests: requests.filter((request) => !this.#over.has(request.id) && !this.isToDrop(request)),
        redos: redos.filter(({ id, request }) => !this.#done.has(id) && !this.#over.has(request)),
      },
      dropped: requests.filter((request) => this.isToDrop(request)),
      unwanted: [...this.#unwanted],
    };
  }

  /** After an append: `state` is what it wrote, `omission` what it left out. */
  forget({ requests, redos }: TableState, { unwanted }: Pick<Omission, "unwanted">): void {
    // Only what this append has left out: a request that became unwanted since may be in the table.
    for (const id of unwanted) this.#unwanted.delete(id);
    const listed = new Set([...requests, ...redos].map(({ id }) => id));
    for (const set of [this.#over, this.#done]) for (const id of set) if (!listed.has(id)) set.delete(id);
    // Dropped by now, or changed since it was judged. A request that was condemned after this
    // append is still to be dropped.
    const standing = new Map(requests.map((request) => [request.id, this.#options.judgedState(request)]));
    for (const [id, judged] of this.#condemned) if (standing.get(id) !== judged) this.#condemned.delete(id);
  }

  /**
   * Appends in the background until nothing is left to drop, because other processes wait for that.
   * Ends with this process.
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
