// The producer's receipt: waits until a ticket is done or has failed permanently.
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
 * Waits for a ticket. Checks when a change in the ticket's directory is reported, and now and then
 * in any case. Throws NO_SUCH_TICKET if the ticket does not exist or is gone. `closed` ends the
 * wait.
 */
export async function waitForReceipt(
  box: Box,
  id: string,
  { signal, closed }: Cancel & { readonly closed: AbortSignal },
): Promise<TicketInfo> {
  const { ports } = box.ground;
  // The wait has no time limit.
  const deadline = new Deadline(ports.clock, { signal, closed, timedOut: () => undefined });
  const waiter = new ChangeWaiter(box.ground);
  let found: FoundTicket | undefined;
  try {
    for (;;) {
      deadline.throwIfOver();
      found = (found && (await isStillAt(box, found)) ? found : undefined) ?? (await findTicket(box, id));
      if (found === undefined) throw noSuchTicket(box, id);
      const info = await describeTicket(box, found);
      // A damaged ticket in any other state is not reported here: a consumer will move it to the
      // dead letters.
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
  const message = `There is no ticket ${id} in ${box.layout.directory}. Was it published in another box, or removed because its retention ended?`;
  return holdfastError("NO_SUCH_TICKET", message, { id });
}

function damaged({ path }: FoundTicket): Error {
  const message = `${path} is damaged, so the result of this ticket is unknown. Run verify.`;
  return holdfastError("CORRUPT", message, { path });
}
