// Requests as callers see them: in `list` and `break`, and in errors that name the blocking holders.
import type { BlockingLock, HolderInfo } from "../../common.ts";
import { holderInfo } from "../../durable/liveness/holder-record.ts";
import type { Liveness } from "../../durable/liveness/liveness.ts";
import { holdfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { HeldLock } from "../path/path-locks.ts";
import { pathsOf, type Claim, areInConflict, blockersOf, holdingOf } from "./conflict.ts";
import { fenceOf, type TableRequest } from "./request.ts";

/** Returns one entry for each claim below `under` that is held now. All of `requests` must exist. */
export async function describeHeld(
  ground: Liveness,
  requests: readonly TableRequest[],
  { under = "" }: { readonly under?: string } = {},
): Promise<HeldLock[]> {
  const holders = new Map<string, HolderInfo>();
  for (const request of requests)
    if (!holders.has(request.holder)) holders.set(request.holder, await holderOf(ground, request));
  const infoOf = ({ holder }: TableRequest): HolderInfo => holders.get(holder) as HolderInfo;
  const waiting = requests.filter((request) => blockersOf(requests, request).length > 0);
  return holdingOf(requests).flatMap((request) =>
    request.claims
      // Without `under`, also list locks on names, which are below no path.
      .filter(({ path }) => under === "" || isWithin(path, under))
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

/** A blocker: a request in the table, or a caller of this process that has none yet. */
export type Blocker = Pick<TableRequest, "holder" | "claims" | "sinceMs"> & { readonly tag?: string | undefined };

/** Returns LOCK_TIMEOUT for a caller that requested `asked`, and whose `claims` are blocked by `blockers`. */
export async function lockTimeout(
  ground: Liveness,
  { asked, claims }: { readonly asked: readonly Claim[]; readonly claims: readonly Claim[] },
  waitedMs: number,
  blockers: readonly Blocker[],
): Promise<Error> {
  const blockedBy: BlockingLock[] = [];
  for (const request of blockers)
    for (const claim of request.claims)
      if (claims.some((mine) => areInConflict(mine, claim)))
        blockedBy.push(describeClaim(request, claim, await holderOf(ground, request)));
  const path = pathsOf(asked);
  const [first] = blockedBy;
  const by = first === undefined ? "" : `: ${describeBlocker(first)}`;
  const message = `${path} could not be locked within ${waitedMs} ms (option timeoutMs)${by}.`;
  return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy });
}

/** Returns DEADLOCK with the holders of `requests`. */
export async function deadlock(
  ground: Liveness,
  path: string,
  requests: readonly TableRequest[],
  message: string,
): Promise<Error> {
  const cycle = await Promise.all(requests.map((request) => holderOf(ground, request)));
  return holdfastError("DEADLOCK", message, { path, cycle });
}

async function holderOf(ground: Liveness, { holder: id, sinceMs }: Blocker): Promise<HolderInfo> {
  // If a holder has ended, only its request describes it.
  return (await ground.findHolder(id)) ?? holderInfo(new Date(sinceMs), { id, state: "dead" });
}

function describeClaim({ sinceMs, tag }: Blocker, claim: Claim, holder: HolderInfo): BlockingLock {
  return { ...claim, holder, since: new Date(sinceMs), ...(tag === undefined ? {} : { tag }) };
}

function describeBlocker({ path, mode, shared, holder, since, tag }: BlockingLock): string {
  const extent = `${mode}${shared ? ", shared" : ""}`;
  const why = tag === undefined ? "" : ` (${tag})`;
  const name = holder.name === undefined ? "" : ` (${holder.name})`;
  const by = `process ${holder.pid} on ${holder.host}${name}`;
  return `${path || "the root"} is locked (${extent}) by ${by} since ${since.toISOString()}${why}`;
}
