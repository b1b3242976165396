// Slots that carry only what changed. Writing a state with many entries whole on each append would
// be wasteful when one entry changed. A delta slot is read on top of the slots before it.
//
// Three rules keep a state readable:
//   - After `deltasMax` deltas comes a whole state, so that a new reader reads at most that many
//     slots.
//   - In an epoch with unsynced slots, an append that must be durable is whole: a power cut may
//     remove the slots before it.
//   - A state that no longer fits into one record is never built from deltas: the next epoch begins
//     with a whole state.
import { slotBytesMax, type Slot, type View, type WholeSlot } from "./epoch.ts";

/** Computes and applies differences between the states of a chain. */
export interface DeltaKind<T> {
  /** Returns true if `state` is so large that a delta costs less, also for readers. */
  readonly isLarge: (state: T) => boolean;
  /** Returns the difference between two states as JSON. */
  readonly between: (before: T, made: T) => object;
  /** Returns the state that `between` described. Throws any error for a delta that it does not understand. */
  readonly apply: (before: T, delta: unknown) => T;
}

export const deltasMax = 64;

/** Upper bound of a delta slot's size without its delta. */
const envelopeBytes = 1024;

/** Returns the slot that turns `view` into `state`: a delta where that is allowed and smaller. */
export function slotFor<T>(
  kind: DeltaKind<T> | undefined,
  view: View<T>,
  made: WholeSlot<T>,
  { mustStandAlone }: { readonly mustStandAlone: boolean },
): Slot<T> {
  const { id, number, state } = made;
  const isAllowed = view.epoch.body.deltas === true && !mustStandAlone && view.slot - view.whole < deltasMax;
  if (kind === undefined || !isAllowed || !kind.isLarge(state)) return made;
  const delta = kind.between(view.state, state);
  const bytes = (view.bytes ?? bytesOf(view.state)) + bytesOf(delta);
  return bytes + envelopeBytes > slotBytesMax ? made : { id, number, whole: view.whole, bytes, delta };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
