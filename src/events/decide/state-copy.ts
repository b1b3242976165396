// Copies of states: what a careless `apply` or decision changes in place must not be what the next attempt goes on from.
import { isDeepStrictEqual } from "node:util";

/** Undefined when the copy would be another thing: a class loses its prototype, a function cannot be copied at all. */
export function findCopy<S>(state: S): { readonly state: S } | undefined {
  if (typeof state === "function") return undefined;
  if (typeof state !== "object" || state === null) return { state };
  try {
    const copy = structuredClone(state);
    return isDeepStrictEqual(copy, state) ? { state: copy } : undefined;
  } catch {
    // DataCloneError: the answer is that there is no copy.
    return undefined;
  }
}

/** The same for what is kept as JSON, where dates, maps and `undefined` are lost as well. */
export function survivesJson(state: unknown): boolean {
  try {
    const text = JSON.stringify(state) as string | undefined;
    return text !== undefined && isDeepStrictEqual(JSON.parse(text), state);
  } catch {
    // A circle, or a bigint.
    return false;
  }
}
