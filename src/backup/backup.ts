// Makes a backup of a live store: what the last one has is not copied again.
import type { Cancel } from "../common.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { isThere } from "../durable/publish/directory.ts";
import { findStore, StoreLayout } from "../durable/store/store-record.ts";
import { holdfastError } from "../errors.ts";
import { redacted } from "../format/database-location.ts";
import { makeId } from "../format/id.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { decodeRecord, encodeRecord } from "../format/record.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { directoryOf, isMemory, isPostgres } from "../ports/node/location.ts";
import { openNodePorts } from "../ports/node/ports.ts";
import { createStore } from "../store.ts";
import {
  abandonedMs,
  completeFolder,
  entriesOf,
  findManifest,
  isDamage,
  listIds,
  manifestName,
  pruningFolder,
  targetKind,
  targetRecord,
  unfinishedFolder,
  type Manifest,
} from "./manifest.ts";
import { copyStoreParts } from "./store-copy.ts";
import { giveUp } from "./target/mark.ts";
import { openTarget, type TargetOptions } from "./target/open-target.ts";
import type { BackupTarget } from "./target/target.ts";
import { BackupWriter, sha256 } from "./write/backup-writer.ts";
import { Copier } from "./write/copier.ts";

/** How far a backup or a restore is. */
export interface BackupProgress {
  /** The part that is being copied, as a path in the store, such as `events/main`. */
  readonly part: string;
  /** The number of files so far. */
  readonly files: number;
  /** The bytes of these files. */
  readonly bytes: number;
}

/** Options of `backup`. */
export interface BackupOptions extends TargetOptions, Cancel {
  /** Reads and writes every file again, including those that the last backup has. Default false. */
  full?: boolean | undefined;
  /** Called after each file. */
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/** A complete backup. */
export interface BackupInfo {
  /** The id of the backup, by which it can be restored. */
  readonly id: string;
  /** The id of the store. */
  readonly store: string;
  /** When it began. Everything that was acknowledged before that is in it. */
  readonly startedAt: Date;
  /** When it became complete. */
  readonly finishedAt: Date;
  /** The number of files in it. */
  readonly files: number;
  /** The bytes of these files. */
  readonly bytes: number;
  /** How many bytes it added to the target, its own records included. */
  readonly added: number;
  /** What could not be copied, such as a socket among the files. Everything else is in the backup. */
  readonly problems: readonly string[];
}

const backupOptions: OptionNames<BackupOptions> = { full: true, onProgress: true, signal: true, s3: true };

/** See `backup` of "holdfast". */
export async function backup(
  location: string | URL,
  to: string | URL,
  options: BackupOptions = {},
): Promise<BackupInfo> {
  checkOptions("backup", options, backupOptions);
  const { full = false, signal, onProgress } = options;
  if (isPostgres(location) || isMemory(location)) throw unsupported(String(location));
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  const record = await findStore(ports.disk, path);
  if (record === undefined) throw await missing(path, ports.disk);
  const target = await openTarget(to, options);
  if (target.directory !== undefined) mustBeApart(path, target.directory);
  await claimTarget(target, record.id);
  const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
  let part = "";
  const writer = new BackupWriter(target, {
    ...{ clock: ports.clock, id, store: record.id, isFull: full, signal },
    onProgress: (files, bytes) => onProgress?.({ part, files, bytes }),
  });
  await writer.begin();
  await mustNotBePruned(target, id);
  await writer.findBlobs();
  const abandoned = full ? [] : await loadPrevious(target, writer, record.id);
  await using store = await createStore(ports, path, { create: false, name: "backup" });
  await using ground = await Ground.open(ports, new StoreLayout(path).ground, { create: false, name: "backup" });
  const copier = new Copier(ports, path, writer);
  try {
    await copyStoreParts(copier, store, ground, { signal, onPart: (name) => void (part = name) });
  } catch (error) {
    // The next run continues from here. If that fails, it continues from the last checkpoint.
    await writer.note().catch(() => undefined);
    throw error;
  }
  const manifest = await writer.commit();
  // This backup contains what interrupted runs had copied.
  for (const each of abandoned)
    if (!(await isAlive(target, each))) await giveUp(target, manifestName(unfinishedFolder, each));
  return infoOf(manifest);
}

export function infoOf({ startedAtMs, finishedAtMs, ...manifest }: Manifest): BackupInfo {
  const { id, store, files, bytes, added, problems } = manifest;
  const [startedAt, finishedAt] = [new Date(startedAtMs), new Date(finishedAtMs)];
  return { id, store, startedAt, finishedAt, files, bytes, added, problems };
}

/** A target belongs to the store that used it first. Throws WRONG_STORE, and INVALID_PATH for a folder of other files. */
async function claimTarget(target: BackupTarget, store: string): Promise<void> {
  let bytes = await target.find(targetRecord);
  if (bytes === undefined) {
    if (!(await target.isEmpty())) {
      const message = `${target.shown} is not empty and has no backups, so none was made there. Choose an empty folder, or a prefix of a bucket that nothing else uses.`;
      throw holdfastError("INVALID_PATH", message, { path: target.shown });
    }
    await target.put(targetRecord, encodeRecord(targetKind, { store }));
    await target.settle();
    bytes = await target.find(targetRecord);
  }
  if (bytes === undefined) {
    const message = `${target.shown} does not keep what is put there: its ${targetRecord} is gone at once. No backup was made. Choose another target.`;
    throw holdfastError("IO_ERROR", message, { path: target.shown });
  }
  const path = `${target.shown}/${targetRecord}`;
  const found = decodeRecord(targetKind, bytes, path).store;
  if (found === store) return;
  const message = `${target.shown} has the backups of the store ${found}, not of ${store}. Choose another folder for each store.`;
  throw holdfastError("WRONG_STORE", message, { path: target.shown, expected: store, found });
}

/**
 * Each side puts its own mark before it looks for the other's, so at least one of them sees the other. The mark of a
 * process that was killed counts until it is an hour old.
 */
async function mustNotBePruned(target: BackupTarget, id: string): Promise<void> {
  const nowMs = await target.nowMs();
  for await (const { name, atMs } of target.list(pruningFolder)) {
    if (nowMs - atMs >= abandonedMs) {
      await giveUp(target, name);
      continue;
    }
    await target.remove(manifestName(unfinishedFolder, id));
    const message = `Old backups are being removed from ${target.shown} (${name}), so no backup was begun. Try again later. If that process was killed, its mark counts until it is an hour old.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: target.shown, blockedBy: [], worthWaiting: true });
  }
}

/**
 * Loads the files of the newest backup that can be read, and of all unfinished ones. Returns the ids of the unfinished
 * ones. A backup that cannot be read is left out: its files are copied again.
 */
async function loadPrevious(target: BackupTarget, writer: BackupWriter, store: string): Promise<string[]> {
  const load = async (folder: string, id: string): Promise<boolean> => {
    try {
      const manifest = await findManifest(target, folder, id);
      if (manifest === undefined || manifest.store !== store) return false;
      for await (const entry of entriesOf(target, manifest, sha256))
        if (entry.kind === "file" && entry.stamp !== undefined) writer.previous.set(entry.path, entry);
      return true;
    } catch (error) {
      if (isDamage(error)) return false;
      throw error;
    }
  };
  for (const id of (await listIds(target, completeFolder)).reverse()) if (await load(completeFolder, id)) break;
  const begun = (await listIds(target, unfinishedFolder)).filter((id) => id !== writer.id);
  for (const id of begun) await load(unfinishedFolder, id);
  return begun;
}

/** True if an unfinished backup has advanced lately, so that it may still be running. */
export async function isAlive(target: BackupTarget, id: string): Promise<boolean> {
  const nowMs = await target.nowMs();
  for await (const { name, atMs } of target.list(unfinishedFolder))
    if (name === `${unfinishedFolder}${id}.json`) return nowMs - atMs < abandonedMs;
  return false;
}

function mustBeApart(store: string, target: string): void {
  if (!`${target}/`.startsWith(`${store}/`) && !`${store}/`.startsWith(`${target}/`)) return;
  const message = `${target} and the store ${store} lie in each other. Choose a folder outside of the store.`;
  throw holdfastError("INVALID_PATH", message, { path: target });
}

function unsupported(location: string): Error {
  const shown = redacted(location);
  const message = `The store ${shown} is not in a folder, so this command cannot back it up. Use pg_dump for a database.`;
  return holdfastError("UNSUPPORTED", message, { what: "the store", location: shown });
}

async function missing(path: string, disk: Parameters<typeof isThere>[0]): Promise<Error> {
  const isFolder = await isThere(disk, path);
  const why = isFolder ? "It has no holdfast.json." : "There is no such folder.";
  const message = `${path} is not a store, so it was not backed up. ${why} Is the share mounted? \`holdfast init DIR --adopt\` makes a store of a log, a box, an object store or a tree that was made alone.`;
  return holdfastError("NOT_A_STORE", message, { path });
}
