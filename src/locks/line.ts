// The line of one process: those of its callers that conflict wait for each other here, so that one of them at a time waits in the lock table.
import type { Deadline } from "../durable/deadline.ts";
import { blockersOf, type Claimant } from "./conflict.ts";
import type { Claim } from "./claim.ts";

interface Place<T> extends Claimant {
  /** Set while it waits. */
  enter?: ((passed: T | undefined) => void) | undefined;
}

/** A place in the line that is not waited for any more. */
export interface Entered<T> {
  readonly claims: readonly Claim[];
  /** What whoever was before it has left to it. */
  readonly passed: T | undefined;
  leave(): void;
  /** Whether somebody waits to whom it could be passed on. */
  hasNext(): boolean;
  /** Leaves, and leaves `value` to the next who waits for this place alone and wants the same. False when there is none: then nothing has changed. */
  passOn(value: T): boolean;
}

export class Line<T = never> {
  #places: Place<T>[] = [];
  #count = 0;

  /** In at once, or not at all. */
  tryEnter(claims: readonly Claim[]): Entered<T> | undefined {
    const place = this.#newPlace(claims);
    if (blockersOf(this.#places, place).length > 0) return undefined;
    this.#places.push(place);
    return this.#entered(place, undefined);
  }

  /** In when every earlier one that conflicts has left; rejects with the deadline's reason and is out of the line. */
  async enter(claims: readonly Claim[], deadline: Deadline): Promise<Entered<T>> {
    deadline.throwIfOver();
    const place = this.#newPlace(claims);
    this.#places.push(place);
    const isFree = blockersOf(this.#places, place).length === 0;
    return this.#entered(place, isFree ? undefined : await this.#wait(place, deadline));
  }

  #entered(place: Place<T>, passed: T | undefined): Entered<T> {
    return {
      claims: place.claims,
      passed,
      leave: () => this.#leave(place),
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

  #newPlace(claims: readonly Claim[]): Place<T> {
    return { id: String(this.#count++), claims };
  }

  #leave(place: Place<T>): void {
    if (!this.#places.includes(place)) return;
    this.#places = this.#places.filter((other) => other !== place);
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
