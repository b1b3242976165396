// The line of one process: those of its callers that conflict wait for each other here, so that one of them at a time waits in the lock table.
import { blockersOf, type Claimant } from "./conflict.ts";
import type { Claim } from "./claim.ts";

interface Place extends Claimant {
  /** Set while it waits. */
  enter?: (() => void) | undefined;
}

export class Line {
  #places: Place[] = [];
  #count = 0;

  /** In at once, or not at all. What is returned leaves. */
  tryEnter(claims: readonly Claim[]): (() => void) | undefined {
    const place = this.#newPlace(claims);
    if (blockersOf(this.#places, place).length > 0) return undefined;
    this.#places.push(place);
    return () => this.#leave(place);
  }

  /** In when every earlier one that conflicts has left; rejects with the signal's reason and is out of the line. */
  async enter(claims: readonly Claim[], signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const place = this.#newPlace(claims);
    this.#places.push(place);
    const leave = (): void => this.#leave(place);
    if (blockersOf(this.#places, place).length > 0) await this.#wait(place, signal);
    return leave;
  }

  async #wait(place: Place, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#leave(place);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      place.enter = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
    });
  }

  #newPlace(claims: readonly Claim[]): Place {
    return { id: String(this.#count++), claims };
  }

  #leave(place: Place): void {
    this.#places = this.#places.filter((other) => other !== place);
    for (const waiting of this.#places)
      if (waiting.enter !== undefined && blockersOf(this.#places, waiting).length === 0) {
        const { enter } = waiting;
        waiting.enter = undefined;
        enter();
      }
  }
}
