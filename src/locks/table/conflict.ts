// Claims: which paths a request, a hold or a redo is about, which claims exclude each other, and which
// requests of a list block which.
import { isWithin } from "../../format/path-key.ts";
import type { LockMode } from "../../common.ts";
import { flagOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";

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

/** Two claims with a common path exclude each other unless both are shared. */
export function areInConflict(mine: Claim, theirs: Claim): boolean {
  return !(mine.shared && theirs.shared) && haveCommonPath(mine, theirs);
}

/** An exact lock covers its path; a tree lock also covers everything below. */
function haveCommonPath(mine: Claim, theirs: Claim): boolean {
  if (mine.path === theirs.path) return true;
  if (mine.mode === "tree" && isWithin(theirs.path, mine.path)) return true;
  return theirs.mode === "tree" && isWithin(mine.path, theirs.path);
}

/** An entry of an ordered list: a request in the lock table, or a caller in a local queue. */
export interface ListedClaims {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** The id of the entry that contains this one, if any. The two do not block each other. */
  readonly within?: string | undefined;
}

export function conflictsWith(mine: readonly Claim[], theirs: readonly Claim[]): boolean {
  for (const claim of mine) for (const other of theirs) if (areInConflict(claim, other)) return true;
  return false;
}

/** Returns those of `others` that conflict with `mine` and are not related to it. */
export function conflictingOf<C extends ListedClaims>(
  others: readonly C[],
  mine: ListedClaims,
  family?: ReadonlySet<string>,
): C[] {
  const conflicting = others.filter(({ claims }) => conflictsWith(mine.claims, claims));
  // Usually there is none, so relatives need not be computed.
  if (conflicting.length === 0) return conflicting;
  const relatives = family ?? relativesOf(others, mine);
  return conflicting.filter(({ id }) => !relatives.has(id));
}

/**
 * Returns the entries that must end before `mine` holds: every earlier one that conflicts with it. `mine` is in the
 * list.
 */
export function blockersOf<C extends ListedClaims>(list: readonly C[], mine: ListedClaims): C[] {
  const index = list.findIndex(({ id }) => id === mine.id);
  return conflictingOf(index < 0 ? list : list.slice(0, index), mine);
}

/** Returns the entries that hold, because nothing blocks them. */
export function holdingOf<C extends ListedClaims>(list: readonly C[]): C[] {
  return list.filter((each) => blockersOf(list, each).length === 0);
}

/** Returns the entries that contain `mine`, the nearest first, as far as they are in the list. */
function outerOf<C extends ListedClaims>(list: readonly C[], mine: ListedClaims): C[] {
  const outer: C[] = [];
  for (let next = mine.within; next !== undefined;) {
    const found = list.find(({ id }) => id === next);
    if (found === undefined || outer.includes(found)) break;
    outer.push(found);
    next = found.within;
  }
  return outer;
}

/**
 * Returns the entries of `outer` whose fences must rise to that of `mine`, which is within them: those that share a
 * path with it, and those that share a path with one of these. The nearest comes first.
 */
export function raisedBy<C extends Pick<ListedClaims, "claims">>(
  outer: readonly C[],
  mine: Pick<ListedClaims, "claims">,
): readonly C[] {
  const raised: C[] = [];
  for (const each of outer) {
    const risen = [mine, ...raised].flatMap(({ claims }) => claims);
    if (each.claims.some((claim) => risen.some((other) => haveCommonPath(claim, other)))) raised.push(each);
  }
  return raised;
}

/**
 * Returns the entries that wait for a hold that contains `mine` and whose fence would rise with that of `mine`. They
 * already have fences, which would then be lower than that of the hold for which they wait. `mine` is the last in the
 * list.
 */
export function overtakenBy<C extends ListedClaims>(list: readonly C[], mine: ListedClaims): C[] {
  if (mine.within === undefined) return [];
  const overtaken = new Set<C>();
  for (const outer of raisedBy(outerOf(list, mine), mine))
    for (const other of conflictingOf(list.slice(list.indexOf(outer) + 1), outer, relativesOf(list, outer)))
      overtaken.add(other);
  return [...overtaken];
}

/** Returns the entry itself, those that contain it, and those within it. */
function relativesOf(list: readonly ListedClaims[], mine: ListedClaims): Set<string> {
  const inner = new Set([mine.id]);
  // Repeat until nothing is added: an upgraded outer entry comes later in the list than those within it.
  for (let size = 0; size < inner.size;) {
    size = inner.size;
    for (const { id, within } of list) if (within !== undefined && inner.has(within)) inner.add(id);
  }
  return new Set([...outerOf(list, mine).map(({ id }) => id), ...inner]);
}

/**
 * Returns the cycle that would result if `mine` waited: an entry for which it waits is itself waiting, perhaps
 * through an entry within it, for a hold that contains `mine`. Only `within` shows that a task needs both: two tasks
 * of one process are independent.
 */
export function findDeadlock<C extends ListedClaims>(list: readonly C[], mine: ListedClaims): C[] | undefined {
  const ancestors = new Set(outerOf(list, mine).map(({ id }) => id));
  if (ancestors.size === 0) return undefined;
  const seen = new Set<string>();
  const search = (waiting: ListedClaims, path: readonly C[]): C[] | undefined => {
    for (const blocker of blockersOf(list, waiting)) {
      if (ancestors.has(blocker.id)) return [...path, blocker];
      if (seen.has(blocker.id)) continue;
      seen.add(blocker.id);
      // It ends once nothing blocks it and the entries within it are granted.
      const inner = list.filter(({ within }) => within === blocker.id);
      for (const next of [blocker, ...inner]) {
        const found = search(next, [...path, blocker]);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  return search(mine, []);
}
