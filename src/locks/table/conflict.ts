// Which claims exclude each other, and which requests of a list block which.
import type { LockMode } from "../../common.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Claim } from "./claim.ts";

/** Where the path of one claim lies, seen from that of another. */
type Relation = "same" | "below" | "above" | "apart";

/**
 * A row for mine, a column for theirs; in it, where my path must lie for the two to meet. An exact
 * lock ends at its path, a tree lock reaches below it. Two claims that meet exclude each other
 * unless both are shared.
 */
const meets: Readonly<Record<LockMode, Readonly<Record<LockMode, readonly Relation[]>>>> = {
  exact: { exact: ["same"], tree: ["same", "below"] },
  tree: { exact: ["same", "above"], tree: ["same", "above", "below"] },
};

function relationOf(mine: string, theirs: string): Relation {
  if (mine === theirs) return "same";
  if (isWithin(mine, theirs)) return "below";
  return isWithin(theirs, mine) ? "above" : "apart";
}

export function areInConflict(mine: Claim, theirs: Claim): boolean {
  return !(mine.shared && theirs.shared) && haveCommonPath(mine, theirs);
}

function haveCommonPath(mine: Claim, theirs: Claim): boolean {
  return meets[mine.mode][theirs.mode].includes(relationOf(mine.path, theirs.path));
}

/**
 * An entry of a list that is served in its order: a request in the lock table, or a caller in a
 * local queue.
 */
export interface Claimant {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** The entry that this one is within. The two do not block each other. */
  readonly within?: string | undefined;
}

export function conflictsWith(mine: readonly Claim[], theirs: readonly Claim[]): boolean {
  return mine.some((claim) => theirs.some((other) => areInConflict(claim, other)));
}

/** Those of `others` that exclude `mine`. */
export function conflictingOf<C extends Claimant>(
  others: readonly C[],
  mine: Claimant,
  family?: ReadonlySet<string>,
): C[] {
  // Mostly no entry is within another.
  if (mine.within === undefined && others.every(({ within }) => within === undefined))
    return others.filter(({ id, claims }) => id !== mine.id && conflictsWith(mine.claims, claims));
  const relatives = family ?? relativesOf(others, mine);
  return others.filter(({ id, claims }) => !relatives.has(id) && conflictsWith(mine.claims, claims));
}

/**
 * The entries that must be over before `mine`, which is in the list, holds: every earlier one that
 * conflicts with it.
 */
export function blockersOf<C extends Claimant>(list: readonly C[], mine: Claimant): C[] {
  const index = list.findIndex(({ id }) => id === mine.id);
  return conflictingOf(index < 0 ? list : list.slice(0, index), mine);
}

/** The entries that hold: nothing blocks them. */
export function holdingOf<C extends Claimant>(list: readonly C[]): C[] {
  return list.filter((each) => blockersOf(list, each).length === 0);
}

/** The entries that `mine` is within, the nearest first, as far as they are in the list. */
function outerOf<C extends Claimant>(list: readonly C[], mine: Claimant): C[] {
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
 * Those of `outer`, the nearest first, whose fence must not be lower than that of `mine`, which is
 * within them: they share a path with it, or with one of them that does.
 */
export function raisedBy<C extends Pick<Claimant, "claims">>(
  outer: readonly C[],
  mine: Pick<Claimant, "claims">,
): readonly C[] {
  const raised: C[] = [];
  for (const each of outer) {
    const risen = [mine, ...raised].flatMap(({ claims }) => claims);
    if (each.claims.some((claim) => risen.some((other) => haveCommonPath(claim, other)))) raised.push(each);
  }
  return raised;
}

/**
 * The entries that wait for an outer hold whose fence would rise with that of `mine`, the last of
 * the list. Their fences are given out, and would be lower than that of the hold that they wait
 * for.
 */
export function overtakenBy<C extends Claimant>(list: readonly C[], mine: Claimant): C[] {
  if (mine.within === undefined) return [];
  const overtaken = new Set<C>();
  for (const outer of raisedBy(outerOf(list, mine), mine))
    for (const other of conflictingOf(list.slice(list.indexOf(outer) + 1), outer, relativesOf(list, outer)))
      overtaken.add(other);
  return [...overtaken];
}

/** The entry itself, those that it is within, and those within it. */
function relativesOf(list: readonly Claimant[], mine: Claimant): Set<string> {
  const inner = new Set([mine.id]);
  // Until nothing is added: an upgraded outer entry stands behind those that are within it.
  for (let size = 0; size < inner.size;) {
    size = inner.size;
    for (const { id, within } of list) if (within !== undefined && inner.has(within)) inner.add(id);
  }
  return new Set([...outerOf(list, mine).map(({ id }) => id), ...inner]);
}

/**
 * The cycle that would close if `mine` waited: an entry that it waits for waits itself, perhaps
 * through an entry within it, for what `mine` is within. Only `within` counts as a wish for more:
 * two tasks of one process are independent.
 */
export function findDeadlock<C extends Claimant>(list: readonly C[], mine: Claimant): C[] | undefined {
  const ancestors = new Set(outerOf(list, mine).map(({ id }) => id));
  if (ancestors.size === 0) return undefined;
  const seen = new Set<string>();
  const search = (waiting: Claimant, path: readonly C[]): C[] | undefined => {
    for (const blocker of blockersOf(list, waiting)) {
      if (ancestors.has(blocker.id)) return [...path, blocker];
      if (seen.has(blocker.id)) continue;
      seen.add(blocker.id);
      // It ends when it is no longer blocked itself, and when the entries within it have been
      // granted.
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
