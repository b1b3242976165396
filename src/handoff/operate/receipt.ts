// The producer's receipt: a wait until a ticket is done or has failed for good.
import type { Cancel } from "../../common.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { Deadline } from "../../durable/wait/deadline.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import type { TicketInfo } from "../model/handoff.ts";
import { describeTicket } from "./describe.ts";
import { findTicket } from "./find.ts";
import type { FoundTicket } from "./tickets.ts";

/**
 * Wakes by a hint that the directory of the ticket has changed, and looks again now and then in any case. NO_SUCH_TICKET
 * when there is none, or none any more. `closed` ends the wait.
 */
export async function waitForReceipt(
  box: Box,
  id: string,
  { signal, closed }: Cancel & { readonly closed: AbortSignal },
): Promise<TicketInfo> {
  const { ports } = box.ground;
  // It has no limit in time, so it is never timed out.
  const deadline = new Deadline(ports.clock, { signal, closed, timedOut: () => undefined });
  const waiter = new ChangeWaiter(ports);
  let found: FoundTicket | undefined;
  try {
    for (;;) {
      deadline.throwIfOver();
      found = (found && (await isStillAt(box, found)) ? found : undefined) ?? (await findTicket(box, id));
      if (found === undefined) throw noSuchTicket(box, id);
      const info = await describeTicket(box, found);
      // Elsewhere a consumer meets a damaged one, and moves it to the dead letters.
      if (info?.damaged !== undefined && info.state === "archive") throw damaged(found);
      if (info?.state === "archive" || info?.state === "error") return info;
      const { path } = found;
      await waiter.wait(parentOf(path), async () => !(await box.disk.canOpen(path)), deadline);
    }
  } finally {
    deadline.cancel();
  }
}

async function isStillAt(box: Box, { path }: FoundTicket): Promise<boolean> {
  return await box.disk.canOpen(path);
}

export function noSuchTicket(box: Box, id: string): Error {
  const message = `There is no ticket ${id} in ${box.layout.directory}. Was it published in another box, or removed by the retention?`;
  return holdfastError("NO_SUCH_TICKET", message, { id });
}

function damaged({ path }: FoundTicket): Error {
  const message = `${path} is damaged, and what became of this ticket cannot be told. Run verify.`;
  return holdfastError("CORRUPT", message, { path });
}
