// The trash: what is on its way out of a box. An entry is moved here by one rename, and goes last, so that after a
// crash the next process knows what is left to remove.
import type { Cancel } from "../../common.ts";
import { isId, randomName } from "../../format/id.ts";
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { linkOnce, moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { recordBytesMax } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import { findCommitted } from "../ledger/ledger.ts";
import { ticketKind, type Ticket } from "../model/manifest.ts";
import { findTicket, orUndefined } from "./find.ts";
import { type FoundTicket } from "./tickets.ts";

const keyPrefix = "key-";
/** `<id>-<claims>-<random>` of a ticket that was collected, `<id>-<random>` of one that was never published. */
const ticketPattern = /^([0-9a-z]{36})(?:-([0-9]{1,9}))?-[0-9a-z]{26}$/;

/** Results that were not committed. */
const randomPattern = /^[0-9a-z]{26}$/;

/** How many bytes its payload had; undefined when another process has moved the ticket. */
export async function removeTicket(box: Box, { name, path }: FoundTicket): Promise<number | undefined> {
  const trashed = `${await box.ensure(box.layout.trash)}/${name.id}-${name.claims}-${newName(box)}`;
  if (!(await moveOnce(box.disk, path, trashed))) return undefined;
  return await finish(box, trashed, name.id, name.claims);
}

/** What of the trash was left by processes that died. Entries of other names are of the process that knows them. */
export async function listTrash(box: Box): Promise<string[]> {
  const isOurs = (text: string): boolean =>
    ticketPattern.test(text) || text.startsWith(keyPrefix) || randomPattern.test(text);
  return (await box.names(box.layout.trash)).filter(isOurs);
}

export async function emptyTrash(box: Box, { signal }: Cancel = {}): Promise<void> {
  for (const text of await listTrash(box)) {
    signal?.throwIfAborted();
    const path = `${box.layout.trash}/${text}`;
    const [, id = "", claims = "0"] = ticketPattern.exec(text) ?? [];
    if (isId(id)) await finish(box, path, id, Number(claims));
    else if (text.startsWith(keyPrefix)) await finishKey(box, path);
    else await removeTree(box.disk, path);
  }
}

async function finish(box: Box, trashed: string, id: string, claims: number): Promise<number> {
  const ticket = await orUndefined(findRecord(box.disk, ticketKind, trashed));
  await removeTree(box.disk, box.layout.payload(id));
  for (let claim = 1; claim <= claims; claim++) await unlinkIfThere(box.disk, box.layout.note(id, String(claim)));
  await unlinkIfThere(box.disk, box.layout.note(id, "progress"));
  if (ticket !== undefined) await releaseKey(box, ticket);
  await removeTree(box.disk, trashed);
  return ticket?.manifest.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
}

/**
 * The key of a ticket that is gone and was never done can be published again. What was done keeps its key for as
 * long as the ledger has it.
 */
export async function releaseKey(box: Box, { isKeyed, manifest: { id, key } }: Ticket): Promise<void> {
  if (!isKeyed || (await findCommitted(box, box.layout.ledger(key, 0))) !== undefined) return;
  const path = box.layout.key(key);
  const holder = await orUndefined(findRecord(box.disk, ticketKind, path));
  if (holder?.manifest.id !== id) return;
  const trashed = `${await box.ensure(box.layout.trash)}/${keyPrefix}${newName(box)}`;
  if (await moveOnce(box.disk, path, trashed)) await finishKey(box, trashed, id);
}

/** Between the look and the move another ticket than `goneId` may have won the key: then it gets it back. */
async function finishKey(box: Box, trashed: string, goneId?: string): Promise<void> {
  const ticket = await orUndefined(findRecord(box.disk, ticketKind, trashed));
  const isGone = ticket === undefined || ticket.manifest.id === goneId;
  if (!isGone && (await findTicket(box, ticket.manifest.id, ticket.manifest)) !== undefined) {
    const bytes = await box.disk.readFile(trashed, recordBytesMax);
    await linkOnce(box.disk, trashed, box.layout.key(ticket.manifest.key), bytes, { mayRepeat: true });
  }
  await unlinkIfThere(box.disk, trashed);
}

function newName(box: Box): string {
  return randomName(box.ground.ports.random.bytes(16));
}
