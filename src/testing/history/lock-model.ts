// The model of an exclusive lock with fences, one for each name: granted to one hold at a time,
// lost by expiry at any moment that was open to it.
import type { Model } from "./linearizability.ts";

export interface LockState {
  readonly holder: string | undefined;
  /** The highest that was ever given out. */
  readonly fence: number;
}

/**
 * `hold` names one stay in the lock, from its acquire to its release: never two of them the same.
 */
export type LockInput =
  | { readonly kind: "acquire"; readonly name: string; readonly hold: string }
  | { readonly kind: "release"; readonly name: string; readonly hold: string }
  /** Something that is done under the lock and must be refused without it. */
  | { readonly kind: "commit"; readonly name: string; readonly hold: string }
  /**
   * The lease ran out, or the lock was broken. The test that knows since when that was possible
   * writes it into the history: called when the holder was stopped, killed or cut off, returned
   * when it is known to have happened, "never" when it may have happened or not.
   */
  | { readonly kind: "expire"; readonly name: string; readonly hold: string };

export type LockOutput =
  | { readonly kind: "granted"; readonly fence: number }
  /** Of an acquire that does not wait, or that waited long enough. */
  | { readonly kind: "refused" }
  | { readonly kind: "done" }
  /** Of a release, a commit or an expiry: the hold was over before. */
  | { readonly kind: "notHeld" };

export interface LockModelOptions {
  /**
   * An acquire may also be refused when the lock is free, for instance because another process
   * waits for it. Default false.
   */
  readonly mayRefuseFree?: boolean;
}

/** Fences must grow with every grant, all holds of one name being in conflict. */
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
      // Granted to a process that never heard of it. Its fence is a whole number above the last
      // one; the least of them rules out nothing that another would allow.
      return isFree ? { holder: hold, fence: state.fence + 1 } : undefined;
    case "granted":
      return isFree && output.fence > state.fence ? { holder: hold, fence: output.fence } : undefined;
    case "refused":
      return !isFree || mayRefuseFree ? state : undefined;
    default:
      return undefined;
  }
}
