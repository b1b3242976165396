// Checks the ledger of a box: each name has a record of its key, and the outputs that the record names.
import { createHash } from "node:crypto";
import { isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { encodeRecord, recordBytesMax } from "../../../format/record.ts";
import { replace } from "../../../durable/publish/publish.ts";
import { findRecord } from "../../../durable/publish/record-file.ts";
import { createUniqueFile } from "../../../durable/publish/unique-file.ts";
import type { Box } from "../../box/box.ts";
import { committedKind, findCommitted, recordName, type Committed, type LedgerEntry } from "../../ledger/ledger.ts";
import { ticketKind } from "../../model/manifest.ts";
import { orUndefined } from "../find.ts";
import { ticketsIn } from "../tickets.ts";
import type { Inspection, Repair } from "./inspection.ts";

const hashPattern = /^[0-9a-f]{64}$/;
/** A ticket that was replayed more often is not expected. */
const replaysMax = 100;

export async function checkLedger(inspection: Inspection, shards: readonly string[]): Promise<void> {
  const { box } = inspection;
  for (const shard of shards) {
    inspection.step();
    const directory = `${box.layout.ledgers}/${shard}`;
    for (const name of await box.names(directory)) {
      inspection.signal.throwIfAborted();
      const path = `${directory}/${name}`;
      if (hashPattern.test(name) && name.startsWith(shard)) await checkEntry(inspection, path);
      else inspection.stray(path);
    }
  }
}

async function checkEntry(inspection: Inspection, path: string): Promise<void> {
  const { box } = inspection;
  let entry: LedgerEntry | undefined;
  try {
    entry = await findCommitted(box, path);
  } catch (error) {
    if (isHoldfastError(error, "NEWER_FORMAT"))
      return inspection.damage(path, error.message, undefined, "Upgrade Holdfast here.");
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    return inspection.damage(path, error.message, remake(inspection, path));
  }
  if (entry === undefined) {
    if (!(await inspection.isStill(path))) return;
    return inspection.damage(path, "It has no record.", remake(inspection, path));
  }
  const { committed, directory } = entry;
  const names = Array.from({ length: replaysMax }, (_, replays) => box.layout.ledger(committed.key, replays));
  if (!names.includes(path))
    return inspection.damage(path, `It is a copy of the entry of the key ${JSON.stringify(committed.key)}.`);
  for (const output of directory === undefined ? [] : committed.outputs) {
    const found = await orUndefined(digestOf(box, `${directory}/outputs/${output.name}`));
    if (found?.sha256 !== output.sha256)
      inspection.damage(`${directory}/outputs/${output.name}`, "This output is missing or altered.");
  }
}

/**
 * The name of a key that was done must stay taken, or the key is done twice. So the record is made anew from the ticket
 * that has the key; what the handler had returned is lost. The damaged one stays beside it, in `aside/`.
 */
function remake(inspection: Inspection, path: string): Repair {
  const { box } = inspection;
  return async () => {
    const known = await findKey(box, path);
    // No ticket has this key, so none can be done twice; a backup may have the record.
    if (known === undefined) return;
    const isDirectory = (await box.disk.findStat(path))?.kind === "directory";
    const committed: Committed = {
      ...known,
      holder: "",
      at: new Date(await box.nowMs()).toISOString(),
      outputs: isDirectory ? await outputsOf(box, `${path}/outputs`) : [],
      sent: [],
    };
    const record = isDirectory ? `${path}/${recordName}` : path;
    await keepCopy(box, record);
    await replace(box.ground.staging, record, encodeRecord(committedKind, committed), { sync: box.isSynced });
  };
}

interface DoneTicket extends Pick<Committed, "key" | "id" | "claims"> {
  readonly replays: number;
}

/** By the key's own name, which has the same hash; else by all tickets. */
async function findKey(box: Box, path: string): Promise<DoneTicket | undefined> {
  const hash = path.slice(path.lastIndexOf("/") + 1);
  const first = await orUndefined(findRecord(box.disk, ticketKind, `${box.layout.keys}/${hash.slice(0, 3)}/${hash}`));
  if (first !== undefined) return { key: first.manifest.key, id: first.manifest.id, claims: 0, replays: 0 };
  for (const state of ["archive", "processing", "incoming", "error"] as const)
    for await (const { name, path: at } of ticketsIn(box, state)) {
      const ticket = await orUndefined(findRecord(box.disk, ticketKind, at));
      if (ticket === undefined) continue;
      const { key } = ticket.manifest;
      for (let replays = 0; replays <= name.replays; replays++)
        if (box.layout.ledger(key, replays) === path) return { key, id: name.id, claims: name.claims, replays };
    }
  return undefined;
}

async function keepCopy(box: Box, path: string): Promise<void> {
  const aside = await box.ensure(`${box.layout.directory}/aside`);
  const name = path.slice(path.lastIndexOf("/") + 1);
  try {
    const bytes = await box.disk.readFile(path, recordBytesMax);
    await createUniqueFile(box.disk, `${aside}/${name}.${box.newId()}`, bytes, { sync: box.isSynced });
    await box.sync(aside);
  } catch (error) {
    // Nothing is there, or so much that it was never a record.
    if (!hasErrno(error, "ENOENT", "EFBIG")) throw error;
  }
}

async function outputsOf(box: Box, directory: string): Promise<Committed["outputs"]> {
  const outputs: Committed["outputs"][number][] = [];
  for (const name of await box.names(directory)) {
    const digest = await digestOf(box, `${directory}/${name}`);
    if (digest !== undefined) outputs.push({ name, ...digest });
  }
  return outputs;
}

const pieceBytes = 1024 * 1024;

async function digestOf(box: Box, path: string): Promise<{ size: number; sha256: string } | undefined> {
  const hash = createHash("sha256");
  let size = 0;
  try {
    const file = await box.disk.open(path, "read");
    try {
      for (let piece = await file.read(0, pieceBytes); piece.length > 0; piece = await file.read(size, pieceBytes)) {
        hash.update(piece);
        size += piece.length;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
  return { size, sha256: hash.digest("hex") };
}
