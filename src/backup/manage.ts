// Lists, verifies and removes backups.
import type { Cancel, Problem, VerifyReport } from "../common.ts";
import { holdfastError } from "../errors.ts";
import { makeId } from "../format/id.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Clock } from "../ports/clock.ts";
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
import { giveUp, Mark } from "./target/mark.ts";
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

/** A prune renews its mark this often. */
const renewalMs = 600_000;

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
  const guard = new PruneGuard(target, clock, makeId(clock.wallMs(), random.bytes(16)));
  // Marks first, then checks for backups in progress. A backup marks first and then checks for prunes, so one of the two
  // sees the other.
  await guard.begin();
  try {
    await mustBeIdle(target);
    return await prune(target, guard, keep, signal);
  } finally {
    await guard.end();
  }
}

async function prune(
  target: BackupTarget,
  guard: PruneGuard,
  keep: number,
  signal: AbortSignal | undefined,
): Promise<PruneReport> {
  const ids = await listIds(target, completeFolder);
  const [removed, kept] = [ids.slice(0, -keep), ids.slice(-keep)];
  const needed = new Set<string>();
  for (const id of kept) {
    // An index that cannot be read stops this: nobody knows what it needs.
    const manifest = await findManifest(target, completeFolder, id);
    if (manifest === undefined) {
      const message = `The backup ${id} vanished from ${target.shown} while old backups were being removed: another process does the same. Nothing was removed. Run it again.`;
      throw holdfastError("RESOURCE_BUSY", message, { path: target.shown, blockedBy: [], worthWaiting: true });
    }
    for (const blob of manifest.index) needed.add(blob);
    for await (const entry of entriesOf(target, manifest, sha256))
      if (entry.kind === "file") for (const [blob] of entry.pieces) needed.add(blob);
    await guard.keep();
  }
  // The manifests first: a backup that is listed has all of its blobs.
  for (const id of removed) {
    await guard.check();
    await target.remove(manifestName(completeFolder, id));
  }
  await target.settle();
  let freed = 0;
  for await (const { name, size } of target.list(blobFolder)) {
    signal?.throwIfAborted();
    const blob = findBlobIn(name);
    await guard.keep();
    if (blob === undefined || needed.has(blob)) continue;
    await guard.check();
    await target.remove(name);
    freed += size;
  }
  // The marks of processes that were killed while they pruned.
  const nowMs = await target.nowMs();
  for await (const { name, atMs } of target.list(pruningFolder))
    if (nowMs - atMs >= abandonedMs) await giveUp(target, name);
  return { removed, kept, freed };
}

/** A backup may begin once the mark of a prune is `abandonedMs` old, so the prune renews it, and stops without it. */
class PruneGuard {
  readonly #clock: Clock;
  readonly #mark: Mark;
  readonly #lost: () => Error;
  #renewedAt: readonly number[];

  constructor(target: BackupTarget, clock: Clock, id: string) {
    this.#clock = clock;
    this.#lost = () => {
      const message = `This process did not advance for an hour while it removed old backups from ${target.shown}, so another one may have begun a backup there. It stopped; every backup that is listed is whole. Run it again.`;
      return holdfastError("CLOSED", message, {});
    };
    this.#mark = new Mark(target, `${pruningFolder}${id}.json`, this.#lost);
    this.#renewedAt = this.#now();
  }

  async begin(): Promise<void> {
    await this.#renew(this.#now());
  }

  /** Renews the mark if it is time. Throws CLOSED if a backup may have begun meanwhile. */
  async keep(): Promise<void> {
    const now = this.#now();
    if (this.#passedMs(now) >= renewalMs) await this.#renew(now);
  }

  /** Call it right before each removal. Throws CLOSED as `keep` does. */
  async check(): Promise<void> {
    await this.keep();
    await this.#mark.mustBeThere();
    if (this.#passedMs(this.#now()) >= abandonedMs) throw this.#lost();
  }

  async end(): Promise<void> {
    await this.#mark.remove();
  }

  async #renew(now: readonly number[]): Promise<void> {
    if (this.#passedMs(now) >= abandonedMs) throw this.#lost();
    await this.#mark.put(Buffer.from("{}\n"));
    this.#renewedAt = now;
  }

  /** One clock may stand while the machine sleeps, the other may be set back. */
  #now(): readonly number[] {
    return [this.#clock.wallMs(), this.#clock.monotonicMs()];
  }

  #passedMs(now: readonly number[]): number {
    return Math.max(...now.map((at, index) => at - (this.#renewedAt[index] ?? at)));
  }
}

/** Removes backups that were begun and abandoned. Throws RESOURCE_BUSY for one that may be running. */
async function mustBeIdle(target: BackupTarget): Promise<void> {
  for (const id of await listIds(target, unfinishedFolder)) {
    if (await isAlive(target, id)) {
      const message = `A backup is being made in ${target.shown}, or was interrupted within the last hour: ${id}. Nothing was removed. Complete it with \`holdfast backup\`, or try again later.`;
      throw holdfastError("RESOURCE_BUSY", message, { path: target.shown, blockedBy: [], worthWaiting: true });
    }
    // From here on that backup cannot become complete.
    await giveUp(target, manifestName(unfinishedFolder, id));
  }
}
