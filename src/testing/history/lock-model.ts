// The model of an exclusive lock with fences, one per name. It is granted to one hold at a time, and may expire at
// any moment that an `expire` operation covers.
import type { Model } from "./linearizability.ts";

/** The state of a lock. */
export interface LockState {
  /** The hold that has the lock; undefined if it is free. */
  readonly holder: string | undefined;
  /** The highest fence that was ever granted. */
  readonly fence: number;
}

/**
 * An operation on a lock. `hold` identifies one hold, from its acquire to its release, and is never
 * reused. `commit` is work that must be refused without the lock.
 *
 * `expire` states that the lease ended or the lock was broken. The test writes it into the history:
 * called when the holder was stopped, killed or cut off, and returned when that is known to have
 * happened.
 */
export type LockInput =
  | { readonly kind: "acquire"; readonly name: string; readonly hold: string }
  | { readonly kind: "release"; readonly name: string; readonly hold: string }
  /** Work under the lock, which must be refused without it. */
  | { readonly kind: "commit"; readonly name: string; readonly hold: string }
  /**
   * The lease ended, or the lock was broken. The test writes it into the history: called when the holder was stopped,
   * killed or cut off, and returned when it is known to have happened, or "never" if it may not have happened.
   */
  | { readonly kind: "expire"; readonly name: string; readonly hold: string };

/**
 * The answer of an operation on a lock. `refused`: the lock was not free, and the acquire did not wait or timed out.
 * `notHeld`: the hold had ended before.
 */
export type LockOutput =
  | { readonly kind: "granted"; readonly fence: number }
  /** The answer of an acquire that did not wait or timed out. */
  | { readonly kind: "refused" }
  | { readonly kind: "done" }
  /** The answer of a release, a commit or an expiry: the hold had ended before. */
  | { readonly kind: "notHeld" };

/** Options of `lockModel`. */
export interface LockModelOptions {
  /**
   * An acquire may be refused although the lock is free, for instance because another process waits
   * for it. Default false.
   */
  readonly mayRefuseFree?: boolean;
}

/** Returns the model of exclusive locks with fences, one for each name. Fences must grow with every grant. */
export function lockModel({ mayRefuseFree = false }: LockModelOptions = {}): Model<LockState, LockInput, LockOutput> {
  return {
    initial: { holder: undefined, fence: -Infinity },
    key: ({ holder, fence }) => `${holder === undefined ? "free" : `held by ${holder}`}, fence ${fence}`,
    partOf: ({ name }) => name,
    isIdle: ({ kind }, output) => kind === "commit" || output.kind === "refused" || output.kind === "notHeld",
    apply: (state, input, output) => {
      if (input.kind === "acquire") return acquired(state, input.hold, output, mayRefuseFree);
      const isHeld = state.holder === input.hold;
      if (output !== undefined && output.kind !== (isHeld ? "done" : "notHeld")) return undefined;
      return isHeld && input.kind !== "commit" ? { ...state, holder: undefined } : state;
    },
  };
}

function acquired(
  state: LockState,
  hold: string,
  output: LockOutput | undefined,
  mayRefuseFree: boolean,
): LockState | undefined {
  const isFree = state.holder === undefined;
  switch (output?.kind) {
    case undefined:
      // Granted to a process that never received the answer. Its fence is unknown: the lowest possible one excludes
      // no later grant.
      return isFree ? { holder: hold, fence: state.fence + 1 } : undefined;
    case "granted":
      return isFree && output.fence > state.fence ? { holder: hold, fence: output.fence } : undefined;
    case "refused":
      return !isFree || mayRefuseFree ? state : undefined;
    default:
      return undefined;
  }
}
