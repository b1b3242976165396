// A claim: one path, how far a lock on it reaches, and whether it is shared. Requests, holds and
// redos are made of claims.
import type { LockMode } from "../../common.ts";
import { flagOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { isWithin } from "../../format/path-key.ts";

/** How far a claim reaches, and whether it admits others beside it. */
export interface LockExtent {
  readonly mode: LockMode;
  readonly shared: boolean;
}

export interface Claim extends LockExtent {
  /**
   * A key (`lock-key.ts`), which is the same for all spellings of a path; or a path in the caller's
   * spelling.
   */
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

/** Whether the holder of `outer` needs nothing more to do what `inner` allows. */
export function covers(outer: Claim, inner: Claim): boolean {
  if (outer.shared && !inner.shared) return false;
  return outer.mode === "tree" ? isWithin(inner.path, outer.path) : inner.mode === "exact" && inner.path === outer.path;
}

/** Whether each of `claims` is covered by one of `outer`. */
export function coversAll(outer: readonly Claim[], claims: readonly Claim[]): boolean {
  return claims.every((inner) => outer.some((each) => covers(each, inner)));
}

/** Whether each of `claims` covers the one at the same place of `others`. */
export function coversEach(claims: readonly Claim[], others: readonly Claim[]): boolean {
  return claims.every((claim, index) => covers(claim, others[index] as Claim));
}

/** The claims with another extent. What `to` leaves out stays as it is. */
export function withExtent<C extends Claim>(claims: readonly C[], { mode, shared }: Partial<LockExtent>): C[] {
  return claims.map((claim) => ({ ...claim, mode: mode ?? claim.mode, shared: shared ?? claim.shared }));
}

/** The narrowest extent that none of `claims` exceeds. */
export function widestExtent(claims: readonly Claim[]): LockExtent {
  const mode = claims.some((claim) => claim.mode === "tree") ? "tree" : "exact";
  return { mode, shared: claims.every((claim) => claim.shared) };
}

/** The paths as messages show them. */
export function pathsOf(claims: readonly Claim[]): string {
  return claims.map(({ path }) => path || ".").join(", ");
}
