// Receives a hold that another process has transferred: its request becomes one of this process.
import type { Cancel } from "../../common.ts";
import type { Session } from "../../durable/liveness/liveness.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { RequestTable } from "../table/request-table.ts";
import { fenceOf, replaceRequest, type TableRequest } from "../table/request.ts";
import { handToCaller } from "./acquire.ts";
import { Grant } from "./grant.ts";
import type { PathHold } from "./path-hold.ts";
import type { AnyPathLocks } from "./table-path-locks.ts";
import { hashOf } from "./transfer.ts";

/** Throws NO_SUCH_TRANSFER if the hold was taken, has expired, or never existed. */
export async function receive(locks: AnyPathLocks, token: string, { signal }: Cancel): Promise<PathHold> {
  signal?.throwIfAborted();
  locks.closed.throwIfAborted();
  const session = await locks.table.ground.session();
  const grant = receivedGrant(locks, await take(locks.table, token, session), session);
  return await handToCaller(grant, { startMs: 0, signal });
}

export function receivedGrant(locks: AnyPathLocks, request: TableRequest, session: Session): Grant {
  const { id, claims, sinceMs, turn } = request;
  return new Grant(locks, { id, session, asked: claims, claims, fence: fenceOf(request, turn), sinceMs, passes: turn });
}

async function take(table: RequestTable, token: string, session: Session): Promise<TableRequest> {
  const dot = token.lastIndexOf(".");
  const id = token.slice(0, dot);
  const secretHash = hashOf(token.slice(dot + 1));
  const isIt = (request: TableRequest): boolean => request.id === id && request.transfer?.secretHash === secretHash;
  const offered = (await table.read()).state.requests.find(isIt);
  if (offered === undefined) throw noSuchTransfer(token, "it was taken, has lapsed, or never was");
  if (await table.isLapsed(offered)) {
    await table.drop([offered]);
    throw noSuchTransfer(token, `it was not received within ${offered.transfer?.expiresMs} ms`);
  }
  session.throwIfOver();
  await table.createReceipt(id, session.holder.id);
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
    // This process may own it now, and then no other would ever release it: drop it. If it does not, another append
    // has changed the request since, and the drop has no effect.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN") && mine !== undefined)
      await table.drop([mine]).catch(() => undefined);
    else await table.removeReceipt(id, session.holder.id);
    throw error;
  }
  const taken = entry?.state.requests.find((request) => request.id === id && request.holder === session.holder.id);
  if (taken === undefined) {
    await table.removeReceipt(id, session.holder.id);
    throw noSuchTransfer(token, "another process has received it, or it has lapsed");
  }
  // If the offer stays, it does no harm: it belongs to no other request, and is swept once its request is over.
  await table.removeOffer(id, { secretHash }).catch(() => undefined);
  return taken;
}

function noSuchTransfer(token: string, why: string): Error {
  // The message omits the secret, because logs might keep it.
  const message = `There is no lock to receive under this token: ${why}. Acquire the lock anew.`;
  return holdfastError("NO_SUCH_TRANSFER", message, { token });
}
