// Transfers a hold to another process. Its request stays in the table and waits for a receiver with the secret; it
// expires if none comes in time.
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { fenceOf, fenceParts, replaceRequest, withoutAnnouncement } from "../table/request.ts";
import type { Grant } from "./grant.ts";
import { finishWork } from "./release.ts";
import { sha256Of } from "../../format/checksum.ts";

/** Ends the hold and returns the token for `receive`. */
export async function transfer(
  grant: Grant,
  { expiresMs = grant.session.holder.leaseMs }: { readonly expiresMs?: number | undefined },
): Promise<string> {
  if (grant.parent !== undefined)
    throw new TypeError("This hold ends with the one that it is within, so it cannot go to another process.");
  const { table, interop, monitor } = grant.locks;
  return await grant.inTurn(async () => {
    grant.mustHold();
    grant.beginToEnd();
    let token: string;
    try {
      await finishWork(grant, "the hold that it is within was transferred");
      token = await offer(grant, expiresMs);
    } catch (error) {
      grant.goOn();
      throw error;
    }
    await interop?.leave(grant);
    monitor.forget(grant);
    grant.giveUp();
    await table.removeReceipt(grant.id, grant.session.holder.id);
    grant.leaveQueue();
    return token;
  });
}

/** Writes the offer into the table. The hold file stays: for other processes the path is as locked as before. */
async function offer(grant: Grant, expiresMs: number): Promise<string> {
  const { table } = grant.locks;
  if (!(expiresMs > 0)) throw new RangeError(`expiresMs must be a number of milliseconds above 0, not ${expiresMs}.`);
  grant.session.throwIfOver();
  const secret = randomName(table.ground.ports.random.bytes(16));
  const made = { secretHash: hashOf(secret), expiresMs: Math.min(Math.ceil(expiresMs), Number.MAX_SAFE_INTEGER) };
  await table.createOffer(grant.id, made);
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
    // Keep the offer file only if the table may contain the offer, which expires by that file.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) await table.removeOffer(grant.id, made).catch(() => undefined);
    throw error;
  }
  if (entry === undefined) {
    await table.removeOffer(grant.id, made);
    throw grant.loseAsDropped();
  }
  return `${grant.id}.${secret}`;
}

/** Returns the hash of a secret: the table stores only the hash, and only the receiver has the secret. */
export function hashOf(secret: string): string {
  return sha256Of(secret).slice(0, 32);
}
