// What happens when a signal aborts, for many waits under one signal. Node looks through all
// listeners of a signal for each one that is added, so fifty thousand waits under one signal took
// seconds; here they share one listener.

interface Waits {
  readonly actions: Set<() => void>;
  readonly stopListening: () => void;
}

const waitsOf = new WeakMap<AbortSignal, Waits>();

/**
 * Calls `action` when `signal` aborts, unless the returned function is called before. For a signal
 * that is not aborted yet.
 */
export function onAbort(signal: AbortSignal, action: () => void): () => void {
  const waits = waitsOf.get(signal) ?? listenTo(signal);
  waits.actions.add(action);
  return () => {
    waits.actions.delete(action);
    if (waits.actions.size === 0) waits.stopListening();
  };
}

function listenTo(signal: AbortSignal): Waits {
  const actions = new Set<() => void>();
  const passOn = (): void => {
    waitsOf.delete(signal);
    for (const action of actions) action();
  };
  const waits: Waits = {
    actions,
    stopListening: () => {
      signal.removeEventListener("abort", passOn);
      // A wait that is ended twice must not hide waits that came since.
      if (waitsOf.get(signal) === waits) waitsOf.delete(signal);
    },
  };
  waitsOf.set(signal, waits);
  signal.addEventListener("abort", passOn, { once: true });
  return waits;
}
