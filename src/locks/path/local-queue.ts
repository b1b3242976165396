// A queue of one process: callers whose claims conflict wait for each other here. The main queue has all callers, so
// that of several that conflict only one waits in the lock table. Each outermost hold has another queue for the holds
// within it.
import type { Deadline } from "../../durable/wait/deadline.ts";
import { type Claim, blockersOf, conflictingOf, type ListedClaims } from "../table/conflict.ts";

/** Describes a caller to those that wait behind it. */
export interface CallerNote {
  readonly sinceMs: number;
  readonly tag?: string | undefined;
}

const unknownCaller: CallerNote = { sinceMs: 0 };

interface QueuedCaller<T> extends ListedClaims {
  claims: readonly Claim[];
  readonly note: CallerNote;
  /** Set while the caller waits. */
  enter?: ((passed: T | undefined) => void) | undefined;
}

/** The turn of a caller that no longer waits. Until it leaves, it blocks later callers that conflict with it. */
export interface LocalTurn<T> {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** The value that the previous caller passed on. */
  readonly passed: T | undefined;
  leave(): void;
  /**
   * Changes the claims of the turn, ahead of the callers that wait. Returns false, without a change, if another
   * caller that has its turn conflicts with them.
   */
  change(claims: readonly Claim[]): boolean;
  /** True if `passOn` would find a caller. */
  hasNext(): boolean;
  /**
   * Leaves, and passes `value` to the next caller if that one waits only for this turn and wants the same claims.
   * Returns false, without a change, if there is none.
   */
  passOn(value: T): boolean;
}

export class LocalQueue<T = never> {
  #callers: QueuedCaller<T>[] = [];
  #count = 0;

  /**
   * Returns a turn if no caller blocks, otherwise undefined. `within`: the turn of the outer hold, if that is in this
   * queue.
   */
  tryEnter(claims: readonly Claim[], within?: string, note: CallerNote = unknownCaller): LocalTurn<T> | undefined {
    const caller = this.#newCaller(claims, note, within);
    if (conflictingOf(this.#callers, caller).length > 0) return undefined;
    this.#callers.push(caller);
    return this.#turnOf(caller, undefined);
  }

  /**
   * Resolves with a turn once every earlier caller that conflicts has left. Leaves the queue and rejects with the
   * deadline's reason if that comes first.
   */
  async enter(
    claims: readonly Claim[],
    deadline: Deadline,
    within?: string,
    note: CallerNote = unknownCaller,
  ): Promise<LocalTurn<T>> {
    deadline.throwIfOver();
    const caller = this.#newCaller(claims, note, within);
    this.#callers.push(caller);
    const isFree = blockersOf(this.#callers, caller).length === 0;
    return this.#turnOf(caller, isFree ? undefined : await this.#wait(caller, deadline));
  }

  /**
   * Returns a function that finds the callers that block now. The lock table may not have them yet. Found only on
   * request: most callers wait, get their turn, and never ask.
   */
  findBlockers(
    claims: readonly Claim[],
    within?: string,
  ): () => readonly (CallerNote & { readonly claims: readonly Claim[] })[] {
    const callers = [...this.#callers];
    const caller = this.#newCaller(claims, unknownCaller, within);
    return () => blockersOf(callers, caller).map(({ claims: theirs, note }) => ({ ...note, claims: theirs }));
  }

  #turnOf(caller: QueuedCaller<T>, passed: T | undefined): LocalTurn<T> {
    return {
      id: caller.id,
      get claims() {
        return caller.claims;
      },
      passed,
      leave: () => this.#leave(caller),
      change: (claims) => this.#change(caller, claims),
      hasNext: () => this.#findNext(caller) !== undefined,
      passOn: (value) => this.#passOn(caller, value),
    };
  }

  async #wait(caller: QueuedCaller<T>, deadline: Deadline): Promise<T | undefined> {
    return await new Promise<T | undefined>((resolve, reject) => {
      const giveUp = (): void => {
        this.#leave(caller);
        reject(deadline.reason);
      };
      const stopWaiting = deadline.onOver(giveUp);
      caller.enter = (passed) => {
        caller.enter = undefined;
        stopWaiting();
        resolve(passed);
      };
    });
  }

  #newCaller(claims: readonly Claim[], note: CallerNote, within: string | undefined): QueuedCaller<T> {
    return { id: String(this.#count++), claims, note, within };
  }

  #leave(caller: QueuedCaller<T>): void {
    if (!this.#callers.includes(caller)) return;
    this.#callers = this.#callers.filter((other) => other !== caller);
    this.#admit();
  }

  #change(caller: QueuedCaller<T>, claims: readonly Claim[]): boolean {
    const others = this.#callers.filter((other) => other !== caller);
    if (others.length === this.#callers.length) return true;
    const entered = others.filter(({ enter }) => enter === undefined);
    if (conflictingOf([caller, ...entered], { ...caller, claims }).length > 0) return false;
    caller.claims = claims;
    // Move it to the front: a waiting caller is blocked by every conflicting entry before its own.
    this.#callers = [caller, ...others];
    this.#admit();
    return true;
  }

  #admit(): void {
    for (const waiting of this.#callers)
      if (waiting.enter !== undefined && blockersOf(this.#callers, waiting).length === 0) waiting.enter(undefined);
  }

  #passOn(caller: QueuedCaller<T>, value: T): boolean {
    const next = this.#findNext(caller);
    if (next === undefined) return false;
    this.#callers = this.#callers.filter((other) => other !== caller);
    next.enter?.(value);
    return true;
  }

  /** Returns the first caller that waits for this one, if it waits for no other. So none is overtaken. */
  #findNext(caller: QueuedCaller<T>): QueuedCaller<T> | undefined {
    const next = this.#callers.find(
      (other) => other.enter !== undefined && blockersOf(this.#callers, other).includes(caller),
    );
    if (next === undefined || blockersOf(this.#callers, next).length > 1) return undefined;
    return haveSameClaims(caller, next) ? next : undefined;
  }
}

function haveSameClaims({ claims: mine }: ListedClaims, { claims: theirs }: ListedClaims): boolean {
  if (mine.length !== theirs.length) return false;
  return mine.every(({ path, mode, shared }, index) => {
    const other = theirs[index];
    return other?.path === path && other.mode === mode && other.shared === shared;
  });
}
