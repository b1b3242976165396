// What an `apply` gives: the state itself. A promise of it would be folded on as if it were the state, and be written down as {}.

/** TypeError for a promise. `who` has made it of the event at `position`. Asked for every event, so it asks no more than that. */
export function mustBeState<S>(state: S, who: string, position: number): S {
  if (typeof (state as { readonly then?: unknown } | null | undefined)?.then !== "function") return state;
  // How it ends is nobody's business any more.
  Promise.resolve(state).catch(() => undefined);
  throw new TypeError(
    `The apply of ${who} gave a promise at event ${position}. It gives the state itself, of its arguments alone, and waits for nothing.`,
  );
}
