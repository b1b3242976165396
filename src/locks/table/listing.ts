// The lock table as `list` and `break` show it: who holds what, and who waits for it.
import type { HolderInfo } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isWithin } from "../../format/path-key.ts";
import { describeClaim, holderOf } from "../path/describe.ts";
import { areInConflict, blockersOf, conflictsWith } from "./conflict.ts";
import type { HeldLock } from "../path/path-locks.ts";
import { fenceOf, type LockRequestRecord } from "./request.ts";

/** One for each claim that is held now by one of `requests`, which all stand. */
export async function describeHeld(
  ground: Ground,
  requests: readonly LockRequestRecord[],
  isShown: (path: string) => boolean,
): Promise<HeldLock[]> {
  const holders = new Map<string, HolderInfo>();
  for (const request of requests)
    if (!holders.has(request.holder)) holders.set(request.holder, await holderOf(ground, request));
  const infoOf = ({ holder }: LockRequestRecord): HolderInfo => holders.get(holder) as HolderInfo;
  const waiting = requests.filter((request) => blockersOf(requests, request).length > 0);
  return holdingOf(requests).flatMap((request) =>
    request.claims
      .filter(({ path }) => isShown(path))
      .map((claim) => ({
        ...describeClaim(request, claim, infoOf(request)),
        holdId: request.id,
        fence: fenceOf(request, request.turn),
        waiting: waiting.flatMap((other) =>
          other.claims
            .filter((wanted) => areInConflict(wanted, claim))
            .map((wanted) => ({ ...wanted, holder: infoOf(other), since: new Date(other.sinceMs) })),
        ),
      })),
  );
}

export function holdingOf(requests: readonly LockRequestRecord[]): LockRequestRecord[] {
  return requests.filter((request) => blockersOf(requests, request).length === 0);
}

/** Those whom somebody would meet who wanted `path` for himself. */
export function holdersOf(requests: readonly LockRequestRecord[], path: string): LockRequestRecord[] {
  const wanted = [{ path, mode: "exact", shared: false } as const];
  return holdingOf(requests).filter(({ claims }) => conflictsWith(claims, wanted));
}

/** Under the root also what is locked by a name and not by a path: people want to see who holds it. */
export function isShownUnder(under: string): (path: string) => boolean {
  return (path) => under === "" || isWithin(path, under);
}
