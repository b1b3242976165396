// A claim: the right to a path, as it is asked for, held and written into the lock table.
import type { LockMode } from "../../common.ts";
import { flagOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";

/** How far a claim reaches, and whom it lets in beside it. */
export interface LockExtent {
  readonly mode: LockMode;
  readonly shared: boolean;
}

export interface Claim extends LockExtent {
  /** A key (`lock-key.ts`): one for all spellings of a path. */
  readonly path: string;
}

export function extentOf(value: unknown): LockExtent {
  const { mode, shared } = objectOf(value);
  return { mode: wordOf(mode, ["exact", "tree"]), shared: flagOf(shared) };
}

export function claimOf(value: unknown): Claim {
  return { path: textOf(objectOf(value).path), ...extentOf(value) };
}
