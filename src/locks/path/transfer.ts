// Handing a hold over to another process: its request stays in the list, waits for whoever has the secret, and lapses when nobody comes.
import { createHash } from "node:crypto";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { findOwn, loseIt, withoutWish } from "./upgrade.ts";
import type { Grant } from "./grant.ts";
import type { LockTable } from "../table/lock-table.ts";
import { fenceOf, fenceParts, type LockRequestRecord } from "../table/request.ts";

/** Gives the request to nobody in particular; the hold is over. The hold file stays, because for everybody else nothing has changed. */
export async function handOver(
  table: LockTable,
  grant: Grant,
  { expiresMs }: { readonly expiresMs: number },
): Promise<string> {
  if (!(expiresMs > 0)) throw new RangeError(`expiresMs must be a number of milliseconds above 0, not ${expiresMs}.`);
  grant.life.throwIfOver();
  const { disk, random } = table.ground.ports;
  const secret = randomName(random.bytes(16));
  const transfer = { secretHash: hashOf(secret), expiresMs: Math.min(Math.ceil(expiresMs), Number.MAX_SAFE_INTEGER) };
  const file = table.transferFile(grant.id, transfer);
  // Before the list says that it waits, because from then on its stamp is what it lapses by.
  await createUniqueFile(disk, file, new Uint8Array(), { sync: false });
  const offer = (): Promise<unknown> =>
    table.append(({ requests, redos }, { change }) => {
      const mine = findOwn(requests, grant);
      if (mine === undefined) return undefined;
      // Holds within it may have had a higher one than the list says.
      const fence = fenceParts(Math.max(grant.fence, fenceOf(mine)));
      return {
        requests: requests.map((request) =>
          request === mine ? { ...withoutWish(mine), change, ...fence, transfer } : request,
        ),
        redos,
      };
    });
  const entry = await offer().catch(async (error: unknown) => {
    // Left alone only where it may be what an offer lapses by.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) await unlinkIfThere(disk, file).catch(() => undefined);
    throw error;
  });
  if (entry === undefined) {
    await unlinkIfThere(disk, file);
    throw loseIt(grant);
  }
  return `${grant.id}.${secret}`;
}

/** Takes over what was handed over. NO_SUCH_TRANSFER when it was taken, has lapsed, or never was. */
export async function takeOver(table: LockTable, token: string, life: HolderSession): Promise<LockRequestRecord> {
  const dot = token.lastIndexOf(".");
  const id = token.slice(0, dot);
  const secretHash = hashOf(token.slice(dot + 1));
  const isIt = (request: LockRequestRecord): boolean =>
    request.id === id && request.transfer?.secretHash === secretHash;
  const offered = (await table.read()).state.requests.find(isIt);
  if (offered === undefined) throw noSuch(token, "it was taken, has lapsed, or never was");
  if (await table.isLapsed(offered)) {
    await table.drop([offered]);
    throw noSuch(token, `nobody took it within ${offered.transfer?.expiresMs} ms`);
  }
  life.throwIfOver();
  let mine: LockRequestRecord | undefined;
  let entry;
  try {
    entry = await table.append(({ requests, redos }, { change }) => {
      const found = requests.find(isIt);
      if (found === undefined) return undefined;
      const { transfer: _transfer, ...request } = { ...found, change, holder: life.holder.id };
      mine = request;
      return { requests: requests.map((each) => (each === found ? request : each)), redos };
    });
  } catch (error) {
    // It may be ours, and then nobody else would ever release it. If it is not, this says nothing about it: another append has changed it last.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN") && mine !== undefined)
      await table.drop([mine]).catch(() => undefined);
    throw error;
  }
  const taken = entry?.state.requests.find((request) => request.id === id && request.holder === life.holder.id);
  if (taken === undefined) throw noSuch(token, "somebody else has taken it, or it has lapsed");
  // Harmless if it stays: it says nothing about any other offer, and goes with what is left when its request is over.
  const file = table.transferFile(id, { secretHash });
  await unlinkIfThere(table.ground.ports.disk, file).catch(() => undefined);
  return taken;
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 32);
}

function noSuch(token: string, why: string): Error {
  // The secret is not repeated where logs might keep it.
  const message = `There is no lock to be received under this token: ${why}. Acquire it anew.`;
  return holdfastError("NO_SUCH_TRANSFER", message, { token });
}
