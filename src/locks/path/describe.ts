// Requests as people want to see them: who stands in the way, since when and where.
import type { BlockingLock, HolderInfo } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { holdfastError } from "../../errors.ts";
import type { Claim } from "../table/claim.ts";
import { areInConflict } from "../table/conflict.ts";
import type { LockRequestRecord } from "../table/request.ts";

/** One for each claim of `requests` that meets one of `claims`. */
export async function describeBlockers(
  ground: Ground,
  requests: readonly LockRequestRecord[],
  claims: readonly Claim[],
): Promise<BlockingLock[]> {
  const blocking: BlockingLock[] = [];
  for (const request of requests)
    for (const claim of request.claims)
      if (claims.some((mine) => areInConflict(mine, claim)))
        blocking.push(describeClaim(request, claim, await holderOf(ground, request)));
  return blocking;
}

export function describeClaim({ sinceMs, tag }: LockRequestRecord, claim: Claim, holder: HolderInfo): BlockingLock {
  return { ...claim, holder, since: new Date(sinceMs), ...(tag === undefined ? {} : { tag }) };
}

export async function holderOf(ground: Ground, { holder: id, sinceMs }: LockRequestRecord): Promise<HolderInfo> {
  const at = new Date(sinceMs);
  // One that has ended leaves nothing but what its request says.
  const unknown: HolderInfo = { id, host: "", pid: 0, startedAt: at, lastSeenAt: at, version: "", state: "dead" };
  return (await ground.findHolder(id)) ?? unknown;
}

export function lockTimeout(asked: readonly Claim[], waitedMs: number, blockedBy: readonly BlockingLock[]): Error {
  const path = asked.map((claim) => claim.path || ".").join(", ");
  const [first] = blockedBy;
  const by =
    first === undefined
      ? ""
      : `: ${first.path || "the root"} is locked (${first.mode}${first.shared ? ", shared" : ""}) by ${nameOf(first.holder)} since ${first.since.toISOString()}${first.tag === undefined ? "" : ` (${first.tag})`}`;
  const message = `${path} could not be locked within ${waitedMs} ms (option timeoutMs)${by}.`;
  return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy });
}

function nameOf({ name, pid, host }: HolderInfo): string {
  return `process ${pid} on ${host}${name === undefined ? "" : ` (${name})`}`;
}
