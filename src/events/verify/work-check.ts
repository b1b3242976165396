// Checks data derived from a log: the checkpoints of consumers, and the documents of read models. An unreadable
// checkpoint stops its consumer. A read model can always be rebuilt.
import { getRecord } from "../../durable/publish/record-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { findNameOf, slotName } from "../../format/name.ts";
import { moveAside } from "../../part/aside.ts";
import type { Findings } from "../../part/findings.ts";
import { readGenerations } from "../../part/generations.ts";
import { remedyOf } from "../../part/ground-check.ts";
import { readCheckpoint, repairCheckpoints } from "../../part/progress/checkpoints.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { LogFiles } from "../log/log-files.ts";
import { documentKind, documentName, isShard, newestOf } from "../projection/document.ts";
import { listShard } from "../projection/document-writer.ts";

export interface WorkCheck {
  readonly repair: boolean;
  readonly signal: AbortSignal | undefined;
}

interface Damage {
  readonly message: string;
  readonly path: string;
}

export async function checkWork(files: LogFiles, check: WorkCheck, findings: Findings): Promise<void> {
  for (const name of await chainsIn(files, "consumers", "epochs")) await checkConsumer(files, name, check, findings);
  for (const name of await chainsIn(files, "projections", "catalog/epochs"))
    await checkReadModel(files, name, check, findings);
}

/** Returns the directories that have such a chain, and ignores foreign ones. */
async function chainsIn({ disk, directory }: LogFiles, room: string, chain: string): Promise<string[]> {
  const found: string[] = [];
  try {
    for (const name of (await disk.list(`${directory}/${room}`)).sort())
      if ((await disk.findStat(`${directory}/${room}/${name}/${chain}`))?.kind === "directory") found.push(name);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
  return found;
}

async function checkConsumer(files: LogFiles, file: string, { repair }: WorkCheck, findings: Findings): Promise<void> {
  const { staging, bootId } = files;
  const path = `${files.directory}/consumers/${file}`;
  const subject = { path, what: `The checkpoint of the consumer ${nameOf(file)}`, findings };
  const damage = await findDamage(subject, () => readCheckpoint(staging, path, { bootId }));
  if (damage === undefined) return;
  const what = `${subject.what} cannot be read: ${damage.message}`;
  if (!(await mayRepair(files, repair))) return findings.damage({ path: damage.path }, what, remedyOf(repair));
  await repairCheckpoints(staging, path, { bootId, moveAside: (each) => moveAside(files, each) });
  const { position } = await readCheckpoint(staging, path, { bootId });
  const remedy = `It continues from position ${position}, the last readable checkpoint, and gets the events after that again.`;
  findings.damage({ path: damage.path }, what, remedy, { repaired: true });
}

async function checkReadModel(
  files: LogFiles,
  file: string,
  { repair, signal }: WorkCheck,
  findings: Findings,
): Promise<void> {
  const path = `${files.directory}/projections/${file}`;
  const subject = { path, what: `The read model ${nameOf(file)}`, findings };
  const damage = await findDamage(subject, () => readDocuments(files, path, signal));
  if (damage === undefined) return;
  const what = `${subject.what} cannot be read completely: ${damage.message}`;
  const repaired = (await mayRepair(files, repair)) && (await moveAside(files, path));
  const remedy = repaired
    ? "It is in aside/. A program that calls `run` or `rebuild` builds it again."
    : `A program that calls \`rebuild\` builds its documents again. ${remedyOf(repair)}`;
  findings.damage({ path: damage.path }, what, remedy, { repaired });
}

/** Reads each document that counts, in all generations that still exist. */
async function readDocuments(files: LogFiles, path: string, signal: AbortSignal | undefined): Promise<void> {
  const { disk, staging, bootId } = files;
  const { current, older = [] } = await readGenerations(staging, path, bootId);
  for (const entry of [current, ...older]) {
    if (entry === undefined) continue;
    const directory = `${path}/${slotName(entry.number)}`;
    const checkpoint = await readCheckpoint(staging, `${directory}/checkpoint`, { bootId });
    if (!checkpoint.isBegun) throw lostCheckpoints(`${directory}/checkpoint`);
    for (const shard of (await disk.list(directory)).filter(isShard))
      for (const name of newestOf(await listShard(disk, `${directory}/${shard}`), checkpoint).values()) {
        signal?.throwIfAborted();
        await unlessGone(() => getRecord(disk, documentKind, `${directory}/${shard}/${documentName(name)}`));
      }
  }
}

function lostCheckpoints(path: string): Error {
  return holdfastError("CORRUPT", `${path}: the checkpoints are missing.`, { path });
}

/** Ignores failures of documents and generations that another process replaces meanwhile. */
async function unlessGone(read: () => Promise<unknown>): Promise<void> {
  await read().catch((error: unknown) => {
    if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
  });
}

interface Subject {
  readonly path: string;
  readonly what: string;
  readonly findings: Findings;
}

/**
 * Returns damage that can be repaired. Returns undefined if everything can be read or a process has
 * replaced it meanwhile. Data that is newer, or unreadable for another reason, is reported and also
 * returns undefined.
 */
async function findDamage(
  { path, what, findings }: Subject,
  read: () => Promise<unknown>,
): Promise<Damage | undefined> {
  try {
    await unlessGone(read);
  } catch (error) {
    if (isHoldfastError(error, "CORRUPT")) return error;
    await findings.attempt({ path }, what, () => Promise.reject(error));
  }
  return undefined;
}

async function mayRepair({ ground }: LogFiles, repair: boolean): Promise<boolean> {
  return repair && !(await ground.hasOthers());
}

function nameOf(file: string): string {
  return JSON.stringify(findNameOf(file) ?? file);
}
