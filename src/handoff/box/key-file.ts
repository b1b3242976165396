// A key file: the record of the ticket that won a key. Keys that were won at the same moment share
// one file under several names; the hash in the name selects the ticket.
import { holdfastError } from "../../errors.ts";
import { findRecord, findRecordSurely } from "../../durable/publish/record-file.ts";
import { listOf, objectOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { encodeTicket, ticketBody, ticketKind, type Ticket } from "../model/manifest.ts";
import type { Box } from "./box.ts";
import { entryBytesMax, GroupPut } from "./group-put.ts";

/** Shared files occur only in boxes whose record allows them. Builds that cannot read them do not open such a box. */
const sharedFormat = 2;

export const keyFileKind: RecordKind<readonly Ticket[]> = {
  kind: ticketKind.kind,
  mayBeDirectory: true,
  newestFormat: sharedFormat,
  decode: (value) => {
    const { entries } = objectOf(value);
    return entries === undefined ? [ticketKind.decode(value)] : listOf(entries, ticketKind.decode);
  },
};

/** Returns the ticket whose key has this hash. */
export function ownerOf({ layout }: Box, tickets: readonly Ticket[], hash: string): Ticket | undefined {
  return tickets.find(({ manifest: { key } }) => layout.key(key).endsWith(`/${hash}`));
}

/**
 * Returns the ticket that won the key of this name, or undefined. On a share, a cache may still
 * report that there is none; `isSure` bypasses the cache. Throws CORRUPT if another program copied
 * or renamed the file.
 */
export async function findOwner(
  box: Box,
  path: string,
  { isSure = false }: { readonly isSure?: boolean } = {},
): Promise<Ticket | undefined> {
  const tickets = await (isSure ? findRecordSurely : findRecord)(box.disk, keyFileKind, path);
  if (tickets === undefined) return undefined;
  const owner = ownerOf(box, tickets, path.slice(path.lastIndexOf("/") + 1));
  if (owner !== undefined) return owner;
  const message = `${path} is the record of another key: it was copied or renamed. Move it away.`;
  throw holdfastError("CORRUPT", message, { path });
}

const groups = new WeakMap<Box, GroupPut<Ticket>>();

/** Returns the group commit for the keys of this box. */
export function keysOf(box: Box): GroupPut<Ticket> {
  let group = groups.get(box);
  if (group === undefined) {
    const mayShare = (ticket: Ticket): boolean =>
      box.sharesKeys && JSON.stringify(ticketBody(ticket)).length <= entryBytesMax;
    groups.set(box, (group = new GroupPut(box, { encode, mayShare })));
  }
  return group;
}

function encode(tickets: readonly Ticket[]): Uint8Array {
  const [first] = tickets;
  return first !== undefined && tickets.length === 1
    ? encodeTicket(first)
    : encodeRecord(
        { kind: ticketKind.kind, newestFormat: sharedFormat, formatOf: () => sharedFormat, decode: (body) => body },
        { entries: tickets.map(ticketBody) },
        { isChecked: true },
      );
}
