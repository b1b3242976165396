// Transferring a hold to another process: its request stays in the table, waits for a receiver with
// the secret, and lapses when none comes in time.
import { createHash } from "node:crypto";
import type { Cancel } from "../../common.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import type { LockTable } from "../table/lock-table.ts";
import { fenceOf, fenceParts, replaceRequest, withoutAnnouncement, type TableRequest } from "../table/request.ts";
import { giveOut } from "./acquire.ts";
import { Grant } from "./grant.ts";
import type { LocksContext } from "./hold-verbs.ts";
import type { PathHold } from "./path-hold.ts";
import { finishWork } from "./release.ts";

/** Ends the hold and returns the token for `receive`. */
export async function transfer(
  locks: LocksContext,
  grant: Grant,
  { expiresMs = grant.session.holder.leaseMs }: { readonly expiresMs?: number | undefined },
): Promise<string> {
  if (grant.parent !== undefined)
    throw new TypeError("This hold ends with the one that it is within, so it cannot go to another process.");
  return await grant.inTurn(async () => {
    grant.mustHold();
    grant.beginToEnd();
    let token: string;
    try {
      await finishWork(locks, grant, "the hold that it is within was transferred");
      token = await offer(locks.table, grant, expiresMs);
    } catch (error) {
      grant.goOn();
      throw error;
    }
    await locks.interop?.leave(grant);
    locks.monitor.forget(grant);
    grant.giveUp();
    await locks.table.holds.removeReceipt(grant.id, grant.session.holder.id);
    grant.leaveQueue();
    return token;
  });
}

/** The hold file stays, because nothing has changed for other processes. */
async function offer(table: LockTable, grant: Grant, expiresMs: number): Promise<string> {
  if (!(expiresMs > 0)) throw new RangeError(`expiresMs must be a number of milliseconds above 0, not ${expiresMs}.`);
  grant.session.throwIfOver();
  const secret = randomName(table.ground.ports.random.bytes(16));
  const made = { secretHash: hashOf(secret), expiresMs: Math.min(Math.ceil(expiresMs), Number.MAX_SAFE_INTEGER) };
  await table.holds.createOffer(grant.id, made);
  let entry;
  try {
    entry = await table.append((state, { change }) => {
      const mine = grant.findRequest(state.requests);
      if (mine === undefined) return undefined;
      // Holds within it may have raised its fence above that of its request.
      const fence = fenceParts(Math.max(grant.fence, fenceOf(mine)));
      return replaceRequest(state, mine, { ...withoutAnnouncement(mine), change, ...fence, transfer: made });
    });
  } catch (error) {
    // It stays only where an offer in the table may lapse by it.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN"))
      await table.holds.removeOffer(grant.id, made).catch(() => undefined);
    throw error;
  }
  if (entry === undefined) {
    await table.holds.removeOffer(grant.id, made);
    throw grant.loseAsDropped();
  }
  return `${grant.id}.${secret}`;
}

/** NO_SUCH_TRANSFER when the hold was taken, has lapsed, or never was. */
export async function receive(locks: LocksContext, token: string, { signal }: Cancel): Promise<PathHold> {
  signal?.throwIfAborted();
  locks.closed.throwIfAborted();
  const session = await locks.table.ground.session();
  const grant = receivedGrant(await take(locks.table, token, session), session);
  return await giveOut(locks, grant, { startMs: 0, signal });
}

export function receivedGrant(request: TableRequest, session: HolderSession): Grant {
  const { id, claims, sinceMs, turn } = request;
  return new Grant({ id, session, asked: claims, claims, fence: fenceOf(request, turn), sinceMs, passes: turn });
}

async function take(table: LockTable, token: string, session: HolderSession): Promise<TableRequest> {
  const dot = token.lastIndexOf(".");
  const id = token.slice(0, dot);
  const secretHash = hashOf(token.slice(dot + 1));
  const isIt = (request: TableRequest): boolean => request.id === id && request.transfer?.secretHash === secretHash;
  const offered = (await table.read()).state.requests.find(isIt);
  if (offered === undefined) throw noSuchTransfer(token, "it was taken, has lapsed, or never was");
  if (await table.holds.isLapsed(offered)) {
    await table.drop([offered]);
    throw noSuchTransfer(token, `it was not received within ${offered.transfer?.expiresMs} ms`);
  }
  session.throwIfOver();
  const { holds } = table;
  await holds.createReceipt(id, session.holder.id);
  let mine: TableRequest | undefined;
  let entry;
  try {
    entry = await table.append((state, { change }) => {
      const found = state.requests.find(isIt);
      if (found === undefined) return undefined;
      const { transfer: _transfer, ...request } = { ...found, change, holder: session.holder.id };
      mine = request;
      return replaceRequest(state, found, request);
    });
  } catch (error) {
    // This process may own it, and then no other would ever release it. If it does not, another
    // append has changed it last, and this judgement says nothing about that.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN") && mine !== undefined)
      await table.drop([mine]).catch(() => undefined);
    else await holds.removeReceipt(id, session.holder.id);
    throw error;
  }
  const taken = entry?.state.requests.find((request) => request.id === id && request.holder === session.holder.id);
  if (taken === undefined) {
    await holds.removeReceipt(id, session.holder.id);
    throw noSuchTransfer(token, "another process has received it, or it has lapsed");
  }
  // Harmless if it stays: it says nothing about any other offer, and is swept when its request is
  // over.
  await table.holds.removeOffer(id, { secretHash }).catch(() => undefined);
  return taken;
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 32);
}

function noSuchTransfer(token: string, why: string): Error {
  // The message does not repeat the secret, because logs might keep it.
  const message = `There is no lock to receive under this token: ${why}. Acquire the lock anew.`;
  return holdfastError("NO_SUCH_TRANSFER", message, { token });
}
