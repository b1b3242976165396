// Runs actions when a signal aborts, for many waits on one signal. Node searches all listeners of a
// signal for each one that is added, so fifty thousand waits on one signal took seconds; here they
// share one listener.

interface Waits {
  readonly actions: Set<() => void>;
  readonly stopListening: () => void;
}

const waitsOf = new WeakMap<AbortSignal, Waits>();

/**
 * Calls `action` when `signal` aborts, unless the returned function is called first. Only for a
 * signal that has not aborted yet.
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
      // Ending a wait twice must not drop waits that were added since.
      if (waitsOf.get(signal) === waits) waitsOf.delete(signal);
    },
  };
  waitsOf.set(signal, waits);
  signal.addEventListener("abort", passOn, { once: true });
  return waits;
}
