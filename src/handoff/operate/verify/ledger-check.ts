// Checks the ledger of a box: each name has the record of its key, and the outputs that the record
// names.
import { createHash } from "node:crypto";
import { isHoldfastError } from "../../../errors.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import { encodeRecord, recordBytesMax } from "../../../format/record.ts";
import { isLink } from "../../../durable/publish/directory.ts";
import { replace } from "../../../durable/publish/publish.ts";
import { findRecord } from "../../../durable/publish/record-file.ts";
import { linkInto } from "../../../durable/publish/foreign-file.ts";
import { createUniqueFile } from "../../../durable/publish/unique-file.ts";
import { readChunks } from "../../../part/read-chunks.ts";
import type { Box } from "../../box/box.ts";
import { findOwner } from "../../box/key-file.ts";
import { committedKind, findCommitted, recordName, type Committed, type LedgerEntry } from "../../ledger/ledger.ts";
import { ticketKind } from "../../model/manifest.ts";
import { undefinedIfDamaged } from "../find.ts";
import { ticketsIn } from "../tickets.ts";
import type { Inspection, Repair } from "./inspection.ts";

const hashPattern = /^[0-9a-f]{64}$/;
/** The largest number of replays of one ticket that the check knows. */
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
    return inspection.unreadable(path, error, remake(inspection, path));
  }
  if (entry === undefined) {
    if (await isLink(box.disk, path)) return inspection.stray(path);
    if (!(await inspection.isStill(path))) return;
    return inspection.damage(path, "It has no record.", remake(inspection, path));
  }
  const { committed, directory } = entry;
  const names = Array.from({ length: replaysMax }, (_, replays) => box.layout.ledger(committed.key, replays));
  if (!names.includes(path))
    return inspection.damage(path, `It is a copy of the entry of the key ${JSON.stringify(committed.key)}.`);
  for (const output of directory === undefined ? [] : committed.outputs) {
    const found = await undefinedIfDamaged(digestOf(box, `${directory}/outputs/${output.name}`));
    if (found?.sha256 !== output.sha256)
      inspection.damage(`${directory}/outputs/${output.name}`, "This output is missing or altered.");
  }
}

/**
 * If the name of a processed key became free, the key could be processed twice. The repair
 * therefore writes a new record from the ticket that has the key; the handler's result is lost. The
 * damaged record is moved to `aside/`.
 */
function remake(inspection: Inspection, path: string): Repair {
  const { box } = inspection;
  return async () => {
    const known = await findKey(box, path);
    // No ticket has this key, so nothing can be processed twice.
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
    // A directory must be moved away first: a rename cannot replace it by a file.
    const inItsPlace = (await box.disk.findStat(record))?.kind ?? "file";
    if (inItsPlace === "file") await keepCopy(box, record);
    else await inspection.aside(record)();
    await replace(box.ground.staging, record, encodeRecord(committedKind, committed), { sync: box.isSynced });
  };
}

interface DoneTicket extends Pick<Committed, "key" | "id" | "claims"> {
  readonly replays: number;
}

/**
 * Finds the ticket of a key by its key file, whose name has the same hash, or else among all
 * tickets.
 */
async function findKey(box: Box, path: string): Promise<DoneTicket | undefined> {
  const hash = path.slice(path.lastIndexOf("/") + 1);
  const first = await undefinedIfDamaged(findOwner(box, `${box.layout.keys}/${hash.slice(0, 3)}/${hash}`));
  if (first !== undefined) return { key: first.manifest.key, id: first.manifest.id, claims: 0, replays: 0 };
  for (const state of ["archive", "processing", "incoming", "error"] as const)
    for await (const { name, path: at } of ticketsIn(box, state)) {
      const ticket = await undefinedIfDamaged(findRecord(box.disk, ticketKind, at));
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
  const copy = `${aside}/${name}.${box.newId()}`;
  try {
    const bytes = await box.disk.readFile(path, recordBytesMax);
    await createUniqueFile(box.disk, copy, bytes, { sync: box.isSynced });
  } catch (error) {
    // The record is missing, or too large to be one.
    if (hasErrno(error, "ENOENT", "EFBIG")) return;
    // The disk cannot read it. A second name keeps what is left of it.
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    await linkInto(box.disk, path, copy);
  }
  await box.sync(aside);
}

async function outputsOf(box: Box, directory: string): Promise<Committed["outputs"]> {
  const outputs: Committed["outputs"][number][] = [];
  for (const name of await box.names(directory)) {
    const digest = await digestOf(box, `${directory}/${name}`);
    if (digest !== undefined) outputs.push({ name, ...digest });
  }
  return outputs;
}

async function digestOf(box: Box, path: string): Promise<{ size: number; sha256: string } | undefined> {
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const piece of readChunks(box.disk, path)) {
      hash.update(piece);
      size += piece.length;
    }
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
  return { size, sha256: hash.digest("hex") };
}
