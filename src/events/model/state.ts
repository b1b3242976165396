// States that a user's `apply` returns: which are accepted, and how they are copied.
import { isDeepStrictEqual } from "node:util";

/**
 * Throws a TypeError for a promise, which would be folded as if it were the state and stored as {}. `who` returned it
 * for the event at `position`. Called for every event, so it checks nothing else.
 */
export function mustBeState<S>(state: S, who: string, position: number): S {
  if (typeof (state as { readonly then?: unknown } | null | undefined)?.then !== "function") return state;
  // Ignores the result of the promise, including a rejection.
  Promise.resolve(state).catch(() => undefined);
  throw new TypeError(
    `The apply of ${who} returned a promise at event ${position}. It must return the state itself, synchronously.`,
  );
}

/**
 * Returns a copy, so that an `apply` or a decision that mutates its state does not affect the next attempt. Returns
 * undefined if a copy would differ: an instance loses its class, and a function cannot be copied.
 */
export function findCopy<S>(state: S): { readonly state: S } | undefined {
  if (typeof state === "function") return undefined;
  if (typeof state !== "object" || state === null) return { state };
  try {
    const copy = structuredClone(state);
    return isDeepStrictEqual(copy, state) ? { state: copy } : undefined;
  } catch {
    // `structuredClone` threw a DataCloneError.
    return undefined;
  }
}

/** True if the state survives a round trip through JSON. Dates, maps and `undefined` do not. */
export function survivesJson(state: unknown): boolean {
  try {
    const text = JSON.stringify(state) as string | undefined;
    return text !== undefined && isDeepStrictEqual(JSON.parse(text), state);
  } catch {
    // The state has a circular reference or a bigint.
    return false;
  }
}
