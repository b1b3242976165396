// A queue of one process: callers that conflict wait for each other here. One queue is for all
// callers, so that of those that conflict only one at a time waits in the lock table; each
// outermost hold has another one for the holds within it.
import type { Deadline } from "../../durable/wait/deadline.ts";
import type { Claim } from "../table/claim.ts";
import { blockersOf, conflictingOf, type Claimant } from "../table/conflict.ts";

/** Who a caller is to those behind it. */
export interface CallerNote {
  readonly sinceMs: number;
  readonly tag?: string | undefined;
}

const unknownCaller: CallerNote = { sinceMs: 0 };

interface Place<T> extends Claimant {
  claims: readonly Claim[];
  readonly note: CallerNote;
  /** Set while the caller waits. */
  enter?: ((passed: T | undefined) => void) | undefined;
}

/**
 * The turn of a caller that waits no longer: it keeps out the callers behind it that conflict,
 * until it leaves.
 */
export interface LocalTurn<T> {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** What the caller before it passed on. */
  readonly passed: T | undefined;
  leave(): void;
  /**
   * Gives the turn other claims, ahead of the callers that wait. False, and nothing has changed,
   * when a caller whose turn it is too conflicts with them.
   */
  change(claims: readonly Claim[]): boolean;
  /** Whether `passOn` would find a caller. */
  hasNext(): boolean;
  /**
   * Leaves, and passes `value` to the next caller, if that waits for this turn alone and wants the
   * same claims. False, and nothing has changed, when there is none.
   */
  passOn(value: T): boolean;
}

export class LocalQueue<T = never> {
  #places: Place<T>[] = [];
  #count = 0;

  /**
   * A turn at once, or none. `within`: the turn of the hold that the caller asks within, if that is
   * in this queue.
   */
  tryEnter(claims: readonly Claim[], within?: string, note: CallerNote = unknownCaller): LocalTurn<T> | undefined {
    const place = this.#newPlace(claims, note, within);
    if (blockersOf(this.#places, place).length > 0) return undefined;
    this.#places.push(place);
    return this.#turnOf(place, undefined);
  }

  /**
   * A turn when every earlier caller that conflicts has left. Rejects with the deadline's reason,
   * out of the queue.
   */
  async enter(
    claims: readonly Claim[],
    deadline: Deadline,
    within?: string,
    note: CallerNote = unknownCaller,
  ): Promise<LocalTurn<T>> {
    deadline.throwIfOver();
    const place = this.#newPlace(claims, note, within);
    this.#places.push(place);
    const isFree = blockersOf(this.#places, place).length === 0;
    return this.#turnOf(place, isFree ? undefined : await this.#wait(place, deadline));
  }

  /**
   * The callers that `tryEnter` would find in the way now. The lock table need not have them yet.
   * Found when they are asked for: most callers wait, get their turn, and never ask.
   */
  inTheWayOf(
    claims: readonly Claim[],
    within?: string,
  ): () => readonly (CallerNote & { readonly claims: readonly Claim[] })[] {
    const places = [...this.#places];
    const place = this.#newPlace(claims, unknownCaller, within);
    return () => blockersOf(places, place).map(({ claims: theirs, note }) => ({ ...note, claims: theirs }));
  }

  #turnOf(place: Place<T>, passed: T | undefined): LocalTurn<T> {
    return {
      id: place.id,
      get claims() {
        return place.claims;
      },
      passed,
      leave: () => this.#leave(place),
      change: (claims) => this.#change(place, claims),
      hasNext: () => this.#findNext(place) !== undefined,
      passOn: (value) => this.#passOn(place, value),
    };
  }

  async #wait(place: Place<T>, deadline: Deadline): Promise<T | undefined> {
    return await new Promise<T | undefined>((resolve, reject) => {
      const giveUp = (): void => {
        this.#leave(place);
        reject(deadline.reason);
      };
      const stopWaiting = deadline.onOver(giveUp);
      place.enter = (passed) => {
        place.enter = undefined;
        stopWaiting();
        resolve(passed);
      };
    });
  }

  #newPlace(claims: readonly Claim[], note: CallerNote, within: string | undefined): Place<T> {
    return { id: String(this.#count++), claims, note, within };
  }

  #leave(place: Place<T>): void {
    if (!this.#places.includes(place)) return;
    this.#places = this.#places.filter((other) => other !== place);
    this.#admit();
  }

  #change(place: Place<T>, claims: readonly Claim[]): boolean {
    const others = this.#places.filter((other) => other !== place);
    if (others.length === this.#places.length) return true;
    const entered = others.filter(({ enter }) => enter === undefined);
    if (conflictingOf([place, ...entered], { ...place, claims }).length > 0) return false;
    place.claims = claims;
    // To the front, because a waiting caller is kept out by the places before its own.
    this.#places = [place, ...others];
    this.#admit();
    return true;
  }

  #admit(): void {
    for (const waiting of this.#places)
      if (waiting.enter !== undefined && blockersOf(this.#places, waiting).length === 0) waiting.enter(undefined);
  }

  #passOn(place: Place<T>, value: T): boolean {
    const next = this.#findNext(place);
    if (next === undefined) return false;
    this.#places = this.#places.filter((other) => other !== place);
    next.enter?.(value);
    return true;
  }

  /**
   * The first caller that waits for this place, if it waits for no other: then none is overtaken.
   */
  #findNext(place: Place<T>): Place<T> | undefined {
    const next = this.#places.find(
      (other) => other.enter !== undefined && blockersOf(this.#places, other).includes(place),
    );
    if (next === undefined || blockersOf(this.#places, next).length > 1) return undefined;
    return haveSameClaims(place, next) ? next : undefined;
  }
}

function haveSameClaims({ claims: mine }: Claimant, { claims: theirs }: Claimant): boolean {
  if (mine.length !== theirs.length) return false;
  return mine.every(({ path, mode, shared }, index) => {
    const other = theirs[index];
    return other?.path === path && other.mode === mode && other.shared === shared;
  });
}
