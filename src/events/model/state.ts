// States that a user's `apply` makes: what is accepted as one, and how it is copied.
import { isDeepStrictEqual } from "node:util";

/**
 * TypeError for a promise, which would be folded on as if it were the state, and be written as {}.
 * `who` made it at the event at `position`. Called for every event, so it checks no more than that.
 */
export function mustBeState<S>(state: S, who: string, position: number): S {
  if (typeof (state as { readonly then?: unknown } | null | undefined)?.then !== "function") return state;
  // The result of the promise is ignored, also when it rejects.
  Promise.resolve(state).catch(() => undefined);
  throw new TypeError(
    `The apply of ${who} returned a promise at event ${position}. It must return the state itself, and wait for nothing.`,
  );
}

/**
 * A copy, so that an `apply` or a decision that changes its state in place does not change the
 * start of the next attempt. Undefined when the copy would differ: a class loses its prototype, a
 * function cannot be copied.
 */
export function findCopy<S>(state: S): { readonly state: S } | undefined {
  if (typeof state === "function") return undefined;
  if (typeof state !== "object" || state === null) return { state };
  try {
    const copy = structuredClone(state);
    return isDeepStrictEqual(copy, state) ? { state: copy } : undefined;
  } catch {
    // DataCloneError.
    return undefined;
  }
}

/** Whether JSON gives it back as it is. Dates, maps and `undefined` are lost. */
export function survivesJson(state: unknown): boolean {
  try {
    const text = JSON.stringify(state) as string | undefined;
    return text !== undefined && isDeepStrictEqual(JSON.parse(text), state);
  } catch {
    // A circular reference, or a bigint.
    return false;
  }
}
