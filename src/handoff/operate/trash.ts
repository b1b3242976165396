// The trash: entries that are being removed from a box. One rename moves an entry here, and it is
// deleted last, so that after a crash the next process knows what is left to remove.
import type { Cancel } from "../../common.ts";
import { isId, randomName } from "../../format/id.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import { undefinedIfDamaged } from "./find.ts";
import { finishKey, isTrashedKey, releaseKey } from "./key-release.ts";
import { type FoundTicket } from "./tickets.ts";

/** `<id>-<claims>-<random>` for a collected ticket, `<id>-<random>` for one that was never published. */
const ticketPattern = /^([0-9a-z]{36})(?:-([0-9]{1,9}))?-[0-9a-z]{26}$/;

/** Outputs that were not committed. */
const randomPattern = /^[0-9a-z]{26}$/;

/**
 * Removes a ticket. Returns how many bytes its payload had, or undefined if another process moved
 * the ticket first.
 */
export async function removeTicket(box: Box, { name, path }: FoundTicket): Promise<number | undefined> {
  const trashed = `${await box.ensure(box.layout.trash)}/${name.id}-${name.claims}-${newName(box)}`;
  if (!(await moveOnce(box.disk, path, trashed))) return undefined;
  return await finish(box, trashed, name.id, name.claims);
}

/**
 * Lists the trash entries that any process may finish removing. Entries with other names are
 * removed by the process that put them there.
 */
export async function listTrash(box: Box): Promise<string[]> {
  const isOurs = (text: string): boolean => ticketPattern.test(text) || isTrashedKey(text) || randomPattern.test(text);
  return (await box.names(box.layout.trash)).filter(isOurs);
}

export async function emptyTrash(box: Box, { signal }: Cancel = {}): Promise<void> {
  for (const text of await listTrash(box)) {
    signal?.throwIfAborted();
    const path = `${box.layout.trash}/${text}`;
    const [, id = "", claims = "0"] = ticketPattern.exec(text) ?? [];
    if (isId(id)) await finish(box, path, id, Number(claims));
    else if (isTrashedKey(text)) await finishKey(box, path);
    else await removeTree(box.disk, path);
  }
}

async function finish(box: Box, trashed: string, id: string, claims: number): Promise<number> {
  const ticket = await undefinedIfDamaged(findRecord(box.disk, ticketKind, trashed));
  await removeTree(box.disk, box.layout.payload(id));
  for (let claim = 1; claim <= claims; claim++) await removeTree(box.disk, box.layout.note(id, String(claim)));
  await removeTree(box.disk, box.layout.note(id, "progress"));
  if (ticket?.isKeyed === true) await releaseKey(box, ticket.manifest.key, id);
  await removeTree(box.disk, trashed);
  return ticket?.manifest.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
}

function newName(box: Box): string {
  return randomName(box.ground.ports.random.bytes(16));
}
