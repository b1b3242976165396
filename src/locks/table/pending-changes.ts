// Verdicts: what this process knows and the list does not say yet. Each of its appends leaves that out, and then it need not be known any more.
import type { LockRequestRecord, Table } from "./request.ts";

/** What a verdict is about. */
type JudgedIn = (request: LockRequestRecord) => string;

export class PendingTableChanges {
  readonly #judgedIn: JudgedIn;
  readonly #isOwed: (id: string) => boolean;
  /** Requests whose hold files are gone. */
  readonly #over = new Set<string>();
  /** Requests to be dropped, because their holders are dead or somebody broke them, by what was judged: what was handed over since is another's. */
  readonly #condemned = new Map<string, string>();
  /** Redos that are done. */
  readonly #done = new Set<string>();

  /** `isOwed`: requests of this process that it has still to end. */
  constructor(judgedIn: JudgedIn, isOwed: (id: string) => boolean) {
    this.#judgedIn = judgedIn;
    this.#isOwed = isOwed;
  }

  get hasCondemned(): boolean {
    return this.#condemned.size > 0;
  }

  isOver(id: string): boolean {
    return this.#over.has(id);
  }

  noteOver(id: string): void {
    this.#over.add(id);
  }

  takeBackOver(id: string): void {
    this.#over.delete(id);
  }

  isCondemned(request: LockRequestRecord): boolean {
    return this.#isOwed(request.id) || this.#condemned.get(request.id) === this.#judgedIn(request);
  }

  condemn(request: LockRequestRecord): void {
    this.#condemned.set(request.id, this.#judgedIn(request));
  }

  isDone(redo: string): boolean {
    return this.#done.has(redo);
  }

  noteDone(redo: string): void {
    this.#done.add(redo);
  }

  /** The list without what is known to be over. */
  leaveOut({ requests, redos }: Table): Table {
    return {
      requests: requests.filter((request) => !this.#over.has(request.id) && !this.isCondemned(request)),
      redos: redos.filter(({ id, request }) => !this.#done.has(id) && !this.#over.has(request)),
    };
  }

  /** All that says nothing about the newest list. */
  forgetWhatLeft({ requests, redos }: Table): void {
    const listed = new Set([...requests, ...redos].map(({ id }) => id));
    for (const set of [this.#over, this.#done]) for (const id of set) if (!listed.has(id)) set.delete(id);
    // Dropped by now, or changed since it was judged. What another task has condemned after this append was made is still to be dropped.
    const standing = new Map(requests.map((request) => [request.id, this.#judgedIn(request)]));
    for (const [id, judged] of this.#condemned) if (standing.get(id) !== judged) this.#condemned.delete(id);
  }
}
