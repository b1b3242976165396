// A claim: one path, the mode of the lock on it, and whether it is shared. Requests, holds and redos consist of
// claims.
import type { LockMode } from "../../common.ts";
import { flagOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { isWithin } from "../../format/path-key.ts";

/** The mode of a claim, and whether it admits other shared claims. */
export interface LockExtent {
  readonly mode: LockMode;
  readonly shared: boolean;
}

export interface Claim extends LockExtent {
  /** A key (`lock-key.ts`), which is the same for all spellings of a path, or a path in the caller's spelling. */
  readonly path: string;
}

/** Decodes an extent. */
export function extentOf(value: unknown): LockExtent {
  const { mode, shared } = objectOf(value);
  return { mode: wordOf(mode, ["exact", "tree"]), shared: flagOf(shared) };
}

/** Decodes a claim. */
export function claimOf(value: unknown): Claim {
  return { path: textOf(objectOf(value).path), ...extentOf(value) };
}

/** True if `outer` allows everything that `inner` does. */
export function covers(outer: Claim, inner: Claim): boolean {
  if (outer.shared && !inner.shared) return false;
  return outer.mode === "tree" ? isWithin(inner.path, outer.path) : inner.mode === "exact" && inner.path === outer.path;
}

/** True if each of `claims` is covered by one of `outer`. */
export function coversAll(outer: readonly Claim[], claims: readonly Claim[]): boolean {
  return claims.every((inner) => outer.some((each) => covers(each, inner)));
}

/** True if each of `claims` covers the one at the same index in `others`. */
export function coversEach(claims: readonly Claim[], others: readonly Claim[]): boolean {
  return claims.every((claim, index) => covers(claim, others[index] as Claim));
}

/** Returns the claims with another extent. Properties that `to` omits stay. */
export function withExtent<C extends Claim>(claims: readonly C[], { mode, shared }: Partial<LockExtent>): C[] {
  return claims.map((claim) => ({ ...claim, mode: mode ?? claim.mode, shared: shared ?? claim.shared }));
}

/** Returns the narrowest extent that is at least as wide as all of `claims`. */
export function widestExtent(claims: readonly Claim[]): LockExtent {
  const mode = claims.some((claim) => claim.mode === "tree") ? "tree" : "exact";
  return { mode, shared: claims.every((claim) => claim.shared) };
}

/** Returns the paths as messages show them. */
export function pathsOf(claims: readonly Claim[]): string {
  return claims.map(({ path }) => path || ".").join(", ");
}
