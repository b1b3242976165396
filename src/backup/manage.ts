// Lists, verifies and removes backups.
import type { Cancel, Problem, VerifyReport } from "../common.ts";
import { holdfastError } from "../errors.ts";
import { makeId } from "../format/id.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { openMemory } from "../ports/node/ports.ts";
import { infoOf, isAlive, type BackupInfo } from "./backup.ts";
import {
  abandonedMs,
  blobFolder,
  completeFolder,
  entriesOf,
  findBlobIn,
  findManifest,
  isDamage,
  listIds,
  manifestName,
  mustBeTarget,
  pruningFolder,
  readBlob,
  unfinishedFolder,
} from "./manifest.ts";
import { openTarget, type TargetOptions } from "./target/open-target.ts";
import type { BackupTarget } from "./target/target.ts";
import { sha256 } from "./write/backup-writer.ts";

/** Options of `listBackups`. */
export interface ListBackupsOptions extends TargetOptions, Cancel {}

/** Options of `verifyBackups`. */
export interface VerifyBackupsOptions extends TargetOptions, Cancel {
  /** Called after each blob, a file of the target, with the number of blobs that were read and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Options of `pruneBackups`. */
export interface PruneOptions extends TargetOptions, Cancel {
  /** How many of the newest backups stay, at least 1. Throws a RangeError for another number. */
  keep: number;
}

/** The result of `pruneBackups`. */
export interface PruneReport {
  /** The ids of the backups that were removed. */
  readonly removed: readonly string[];
  /** The ids of those that stay, oldest first. */
  readonly kept: readonly string[];
  /** How many bytes the target has less than before. */
  readonly freed: number;
}

const listOptions: OptionNames<ListBackupsOptions> = { signal: true, s3: true };
const verifyOptions: OptionNames<VerifyBackupsOptions> = { onProgress: true, signal: true, s3: true };
const pruneOptions: OptionNames<PruneOptions> = { keep: true, signal: true, s3: true };

/** See `listBackups` of "holdfast". */
export async function listBackups(location: string | URL, options: ListBackupsOptions = {}): Promise<BackupInfo[]> {
  checkOptions("listBackups", options, listOptions);
  const target = await openTarget(location, options);
  await mustBeTarget(target);
  const found: BackupInfo[] = [];
  for (const id of await listIds(target, completeFolder)) {
    options.signal?.throwIfAborted();
    const manifest = await findManifest(target, completeFolder, id);
    if (manifest?.isComplete === true) found.push(infoOf(manifest));
  }
  return found;
}

/** See `verifyBackups` of "holdfast". */
export async function verifyBackups(location: string | URL, options: VerifyBackupsOptions = {}): Promise<VerifyReport> {
  checkOptions("verifyBackups", options, verifyOptions);
  const target = await openTarget(location, options);
  await mustBeTarget(target);
  const problems: Problem[] = [];
  /** For each blob, how long it must be. */
  const needed = new Map<string, number>();
  const users = new Map<string, Set<string>>();
  const report = (path: string, what: string): void => {
    const remedy = "Make a backup that does not need it: `holdfast backup STORE TARGET --full`.";
    problems.push({ path: `${target.shown}/${path}`, what, remedy, severity: "damage", repaired: false });
  };
  for (const id of await listIds(target, completeFolder)) {
    try {
      const manifest = await findManifest(target, completeFolder, id);
      if (manifest === undefined) continue;
      const need = (blob: string, length: number): void => {
        needed.set(blob, Math.max(length, needed.get(blob) ?? 0));
        users.set(blob, (users.get(blob) ?? new Set()).add(id));
      };
      for (const blob of manifest.index) need(blob, 0);
      for await (const entry of entriesOf(target, manifest, sha256))
        if (entry.kind === "file") for (const [blob, offset, length] of entry.pieces) need(blob, offset + length);
    } catch (error) {
      if (!isDamage(error)) throw error;
      report(manifestName(completeFolder, id), `The backup ${id} cannot be read: ${(error as Error).message}`);
    }
  }
  let done = 0;
  for (const [blob, length] of needed) {
    options.signal?.throwIfAborted();
    try {
      if ((await readBlob(target, blob, sha256)).length < length)
        throw holdfastError("CORRUPT", `${blob} is shorter than its files.`, { path: blob });
    } catch (error) {
      if (!isDamage(error)) throw error;
      report(`${blobFolder}${blob.slice(0, 2)}/${blob}`, `It is missing or damaged, and needed by ${[...(users.get(blob) ?? [])].join(", ")}.`); // prettier-ignore
    }
    options.onProgress?.(++done, needed.size);
  }
  return { ok: problems.length === 0, checked: needed.size, problems };
}

/** See `pruneBackups` of "holdfast". */
export async function pruneBackups(location: string | URL, options: PruneOptions): Promise<PruneReport> {
  checkOptions("pruneBackups", options, pruneOptions);
  const { keep, signal } = options;
  if (!Number.isSafeInteger(keep) || keep < 1) throw new RangeError(`keep must be a whole number from 1, not ${keep}.`);
  const target = await openTarget(location, options);
  await mustBeTarget(target);
  const { clock, random } = openMemory().ports;
  const mark = `${pruningFolder}${makeId(clock.wallMs(), random.bytes(16))}.json`;
  // Marks first, then checks for backups in progress. A backup marks first and then checks for prunes, so one of the two
  // sees the other.
  await target.put(mark, Buffer.from("{}\n"));
  await target.settle();
  try {
    await mustBeIdle(target);
    return await prune(target, keep, signal);
  } finally {
    await target.remove(mark);
  }
}

async function prune(target: BackupTarget, keep: number, signal: AbortSignal | undefined): Promise<PruneReport> {
  const ids = await listIds(target, completeFolder);
  const [removed, kept] = [ids.slice(0, -keep), ids.slice(-keep)];
  const needed = new Set<string>();
  for (const id of kept) {
    // An index that cannot be read stops this: nobody knows what it needs.
    const manifest = await findManifest(target, completeFolder, id);
    for (const blob of manifest?.index ?? []) needed.add(blob);
    if (manifest === undefined) continue;
    for await (const entry of entriesOf(target, manifest, sha256))
      if (entry.kind === "file") for (const [blob] of entry.pieces) needed.add(blob);
  }
  // The manifests first: a backup that is listed has all of its blobs.
  for (const id of removed) await target.remove(manifestName(completeFolder, id));
  await target.settle();
  let freed = 0;
  for await (const { name, size } of target.list(blobFolder)) {
    signal?.throwIfAborted();
    const blob = findBlobIn(name);
    if (blob === undefined || needed.has(blob)) continue;
    await target.remove(name);
    freed += size;
  }
  // The marks of processes that were killed while they pruned.
  const nowMs = await target.nowMs();
  for await (const { name, atMs } of target.list(pruningFolder))
    if (nowMs - atMs >= abandonedMs) await target.remove(name);
  return { removed, kept, freed };
}

/** Removes backups that were begun and abandoned. Throws RESOURCE_BUSY for one that may be running. */
async function mustBeIdle(target: BackupTarget): Promise<void> {
  for (const id of await listIds(target, unfinishedFolder)) {
    if (await isAlive(target, id)) {
      const message = `A backup is being made in ${target.shown}, or was interrupted within the last hour: ${id}. Nothing was removed. Complete it with \`holdfast backup\`, or try again later.`;
      throw holdfastError("RESOURCE_BUSY", message, { path: target.shown, blockedBy: [], worthWaiting: true });
    }
    // From here on that backup cannot become complete.
    await target.remove(manifestName(unfinishedFolder, id));
  }
}
