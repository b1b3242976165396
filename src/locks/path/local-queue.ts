// A line in one process: callers that conflict wait for each other here. There is one for all callers, so that one of them at
// a time waits in the lock table, and one for the holds within each outermost hold.
import type { Deadline } from "../../durable/wait/deadline.ts";
import { blockersOf, conflictingOf, type Claimant } from "../table/conflict.ts";
import type { Claim } from "../table/claim.ts";

interface Place<T> extends Claimant {
  claims: readonly Claim[];
  /** Set while it waits. */
  enter?: ((passed: T | undefined) => void) | undefined;
}

/** A place in the line that is not waited for any more. */
export interface LocalTurn<T> {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** What whoever was before it has left to it. */
  readonly passed: T | undefined;
  leave(): void;
  /**
   * Gives the place other claims. False, and nothing has changed, when one that has entered conflicts with them. Those that
   * wait are overtaken.
   */
  change(claims: readonly Claim[]): boolean;
  /** Whether somebody waits to whom it could be passed on. */
  hasNext(): boolean;
  /** Leaves, and leaves `value` to the next who waits for this place alone and wants the same. False when there is none: then nothing has changed. */
  passOn(value: T): boolean;
}

export class LocalQueue<T = never> {
  #places: Place<T>[] = [];
  #count = 0;

  /** In at once, or not at all. `within`: the place of the hold that it is within, if that is in this line. */
  tryEnter(claims: readonly Claim[], within?: string): LocalTurn<T> | undefined {
    const place = this.#newPlace(claims, within);
    if (blockersOf(this.#places, place).length > 0) return undefined;
    this.#places.push(place);
    return this.#entered(place, undefined);
  }

  /** In when every earlier one that conflicts has left; rejects with the deadline's reason and is out of the line. */
  async enter(claims: readonly Claim[], deadline: Deadline, within?: string): Promise<LocalTurn<T>> {
    deadline.throwIfOver();
    const place = this.#newPlace(claims, within);
    this.#places.push(place);
    const isFree = blockersOf(this.#places, place).length === 0;
    return this.#entered(place, isFree ? undefined : await this.#wait(place, deadline));
  }

  #entered(place: Place<T>, passed: T | undefined): LocalTurn<T> {
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

  #newPlace(claims: readonly Claim[], within: string | undefined): Place<T> {
    return { id: String(this.#count++), claims, within };
  }

  #leave(place: Place<T>): void {
    if (!this.#places.includes(place)) return;
    this.#places = this.#places.filter((other) => other !== place);
    this.#letIn();
  }

  #change(place: Place<T>, claims: readonly Claim[]): boolean {
    const others = this.#places.filter((other) => other !== place);
    if (others.length === this.#places.length) return true;
    const entered = others.filter(({ enter }) => enter === undefined);
    if (conflictingOf([place, ...entered], { ...place, claims }).length > 0) return false;
    place.claims = claims;
    // To the front, because those that wait are kept out by what stands before them.
    this.#places = [place, ...others];
    this.#letIn();
    return true;
  }

  #letIn(): void {
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

  /** The first who waits for it, and no other: nobody is overtaken. */
  #findNext(place: Place<T>): Place<T> | undefined {
    const next = this.#places.find(
      (other) => other.enter !== undefined && blockersOf(this.#places, other).includes(place),
    );
    if (next === undefined || blockersOf(this.#places, next).length > 1) return undefined;
    return wantTheSame(place, next) ? next : undefined;
  }
}

function wantTheSame({ claims: mine }: Claimant, { claims: theirs }: Claimant): boolean {
  if (mine.length !== theirs.length) return false;
  return mine.every(({ path, mode, shared }, index) => {
    const other = theirs[index];
    return other?.path === path && other.mode === mode && other.shared === shared;
  });
}
