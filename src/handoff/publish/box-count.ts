// Counts the tickets of a box by their names, for its limits.
import { hasErrno } from "../../ports/disk-error.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import { findTicketId } from "../model/ticket-name.ts";
import { directoriesOf } from "../operate/tickets.ts";
import type { CountedTickets, CountedBox } from "./backlog.ts";

export function countedBox(box: Box): CountedBox {
  /** The size of each ticket's payload, if bytes are limited. Each is read once. */
  let sizes: ReadonlyMap<string, number> = new Map();
  return {
    clock: box.ground.ports.clock,
    path: box.layout.directory,
    count: async (ids, { withBytes }): Promise<CountedTickets> => {
      let [tickets, bytes] = [0, 0];
      const found = new Map<string, number>();
      const met = new Set<string>();
      for (const state of ["delayed", "incoming", "processing"] as const)
        for (const { directory } of await directoriesOf(box, state))
          for (const name of await box.names(directory)) {
            const id = findTicketId(name);
            if (id === undefined) continue;
            tickets++;
            // The ids of other tickets are not kept: they would take much memory.
            if (ids.has(id)) met.add(id);
            if (!withBytes) continue;
            const size = sizes.get(id) ?? (await sizeOf(box, `${directory}/${name}`));
            found.set(id, size);
            bytes += size;
          }
      sizes = found;
      return { tickets, bytes, met };
    },
  };
}

async function sizeOf(box: Box, path: string): Promise<number> {
  try {
    const ticket = await findRecord(box.disk, ticketKind, path);
    return ticket?.manifest.files.reduce((sum, { size }) => sum + size, 0) ?? 0;
  } catch (error) {
    // The ticket is damaged or is being moved. It counts as one without a payload.
    if (isUnreadable(error) || hasErrno(error, "ESTALE")) return 0;
    throw error;
  }
}
