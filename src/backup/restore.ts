// Restores a backup into a folder that does not exist yet, whole or not at all.
import { createHash } from "node:crypto";
import type { Cancel } from "../common.ts";
import { encodeEpochOf } from "../durable/chain/only-epoch.ts";
import {
  ensureDirectory,
  isLink,
  isThere,
  listIfThere,
  parentOf,
  removeTree,
  syncNames,
  unlinkIfThere,
} from "../durable/publish/directory.ts";
import { linkOnce, renameOnce } from "../durable/publish/publish.ts";
import { inParallel } from "../durable/wait/in-parallel.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { findUnportable } from "../format/name.ts";
import { textOf, objectOf } from "../format/decoding.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../format/record.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { emptyTable, tableKind } from "../locks/table/request.ts";
import { diskError, hasErrno } from "../ports/disk-error.ts";
import type { Disk, Volume } from "../ports/disk.ts";
import { directoryOf } from "../ports/node/location.ts";
import { openNodePorts } from "../ports/node/ports.ts";
import type { Ports } from "../ports/ports.ts";
import { infoOf, type BackupInfo, type BackupProgress } from "./backup.ts";
import { completeFolder, entriesOf, findManifest, listIds, mustBeTarget, readBlob, type Manifest } from "./manifest.ts";
import type { Entry, FileEntry, Piece } from "./model.ts";
import { openTarget, type TargetOptions } from "./target/open-target.ts";
import type { BackupTarget } from "./target/target.ts";
import { sha256 } from "./write/backup-writer.ts";

/** Options of `restore`. */
export interface RestoreOptions extends TargetOptions, Cancel {
  /** Id of the backup. Default: the newest one. */
  backup?: string | undefined;
  /** Called after each file. */
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/** The result of `restore`. */
export interface RestoreReport extends BackupInfo {
  /** The fences of all locks in the restored store are higher than this number. */
  readonly fencesAbove: number;
}

const restoreOptions: OptionNames<RestoreOptions> = { backup: true, onProgress: true, signal: true, s3: true };

/** How many blobs stay in memory: many small files share one. */
const blobsKept = 8;
const writesAtOnce = 8;
/** A larger file is written in pieces. */
const smallBytes = 16 * 1024 * 1024;
const noteName = "restoring.json";
/** A restore skips this many numbers of a lock table for each millisecond since the backup, and at least `numbersMin`. */
const numbersPerMs = 1;
const numbersMin = 2 ** 24;
/** A fence is a number of the table times this, plus a turn. */
const turnsPerNumber = 65_536;
/** The jump takes at most one in this many of the numbers that are left for fences. */
const shareOfRest = 16;

const noteKind: RecordKind<{ readonly backup: string }> = {
  kind: "restore",
  decode: (value) => ({ backup: textOf(objectOf(value).backup) }),
};

/** See `restore` of "holdfast". */
export async function restore(
  from: string | URL,
  location: string | URL,
  options: RestoreOptions = {},
): Promise<RestoreReport> {
  checkOptions("restore", options, restoreOptions);
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  const target = await openTarget(from, options);
  await mustBeTarget(target);
  const manifest = await chooseBackup(target, options.backup);
  await mustBeEmpty(ports.disk, path);
  return await alone(ports, path, async () => {
    // Another restore may have ended a moment ago.
    await mustBeEmpty(ports.disk, path);
    const work = new Restoring(ports, target, { directory: path, manifest, options });
    const fencesAbove = await work.run();
    return { ...infoOf(manifest), fencesAbove };
  });
}

/** Runs one restore into a folder at a time: two of them would write into the same files. Throws RESOURCE_BUSY. */
async function alone<T>(ports: Ports, directory: string, run: () => Promise<T>): Promise<T> {
  await ensureDirectory(ports.disk, parentOf(directory));
  const path = `${directory}.restoring.lock`;
  const lock = await ports.osLock.open(path);
  try {
    if (!(await lock.tryLock())) {
      const message = `Another process is restoring a backup to ${directory}. Wait for it, or name another folder.`;
      throw holdfastError("RESOURCE_BUSY", message, { path: directory, blockedBy: [], worthWaiting: true });
    }
    try {
      return await run();
    } finally {
      // One that stays does no harm, and the store is restored.
      await unlinkIfThere(ports.disk, path).catch(() => undefined);
    }
  } finally {
    await lock.close();
  }
}

/** Throws NOT_A_STORE if there is no such backup, and CORRUPT. */
export async function chooseBackup(target: BackupTarget, id: string | undefined): Promise<Manifest> {
  const ids = await listIds(target, completeFolder);
  const chosen = id ?? ids.at(-1);
  const manifest =
    chosen === undefined || !ids.includes(chosen) ? undefined : await findManifest(target, completeFolder, chosen);
  if (manifest?.isComplete === true) return manifest;
  const what = id === undefined ? "no complete backup" : `no complete backup ${JSON.stringify(id)}`;
  const message = `There is ${what} in ${target.shown}. \`holdfast backups TARGET\` lists them.`;
  throw holdfastError("NOT_A_STORE", message, { path: target.shown });
}

async function mustBeEmpty(disk: Disk, path: string): Promise<void> {
  const stat = await disk.findStat(path);
  if (stat === undefined) return;
  if (stat.kind === "directory" && (await listIfThere(disk, path)).length === 0) return;
  const message = `${path} is not empty, so nothing was restored. Name a folder that does not exist, or move this one away first.`;
  throw holdfastError("INVALID_PATH", message, { path });
}

interface Work {
  readonly directory: string;
  readonly manifest: Manifest;
  readonly options: RestoreOptions;
}

class Restoring {
  readonly #ports: Ports;
  readonly #disk: Disk;
  readonly #target: BackupTarget;
  readonly #work: Work;
  /** Where the store is until it is whole. */
  readonly #directory: string;
  readonly #blobs = new Map<string, Promise<Uint8Array>>();
  readonly #made = new Set<string>();
  #files = 0;
  #bytes = 0;

  constructor(ports: Ports, target: BackupTarget, work: Work) {
    this.#ports = ports;
    this.#disk = ports.disk;
    this.#target = target;
    this.#work = work;
    this.#directory = `${work.directory}.restoring`;
  }

  async run(): Promise<number> {
    const { directory, manifest } = this.#work;
    await this.#begin();
    const entries: Entry[] = [];
    for await (const entry of entriesOf(this.#target, manifest, sha256)) entries.push(entry);
    mustFit(entries, this.#target.shown);
    mustBeNameable(entries, this.#disk.volume);
    const fencesAbove = await this.#make(entries);
    await this.#removeOthers(entries);
    for (const each of this.#made) await syncNames(this.#disk, each);
    await unlinkIfThere(this.#disk, `${this.#directory}/${noteName}`);
    await syncNames(this.#disk, this.#directory);
    await renameOnce(this.#disk, this.#directory, directory).catch((error: unknown) => {
      throw hasErrno(error, "EBUSY", "ENOTEMPTY", "EEXIST") ? inUse(directory, error) : error;
    });
    await syncNames(this.#disk, parentOf(directory));
    return fencesAbove;
  }

  /** An interrupted restore of the same backup is continued; one of another backup is begun again. */
  async #begin(): Promise<void> {
    const note = `${this.#directory}/${noteName}`;
    if (await isThere(this.#disk, this.#directory)) {
      const bytes = await this.#disk.readFile(note, 65_536).catch((error: unknown) => {
        if (!hasErrno(error, "ENOENT")) throw error;
        return undefined;
      });
      const isFree = (await listIfThere(this.#disk, this.#directory)).length === 0;
      if (bytes === undefined && !isFree) {
        const message = `${this.#directory} is needed for the restore, and has other files. Move it away, then repeat the restore.`;
        throw holdfastError("INVALID_PATH", message, { path: this.#directory });
      }
      if (bytes !== undefined && isOf(bytes, note, this.#work.manifest.id)) return;
      await removeTree(this.#disk, this.#directory);
    }
    await ensureDirectory(this.#disk, this.#directory);
    await this.#disk.createFile(note, encodeRecord(noteKind, { backup: this.#work.manifest.id }), { sync: true });
    await syncNames(this.#disk, this.#directory);
  }

  async #make(entries: readonly Entry[]): Promise<number> {
    const { signal, onProgress } = this.#work.options;
    let fencesAbove = 0;
    let part = "";
    // By blob, because small files of one blob are mostly not beside each other in the index.
    const order = (entry: Entry): string => (entry.kind === "file" ? (entry.pieces[0]?.[0] ?? "") : "");
    const files = entries.filter((entry) => entry.kind === "file");
    await inParallel(sortedBy(files, order), writesAtOnce, async (entry) => {
      signal?.throwIfAborted();
      await this.#file(entry);
      this.#files++;
      this.#bytes += entry.size;
      part = entry.path.split("/", 2).join("/");
      onProgress?.({ part, files: this.#files, bytes: this.#bytes });
    });
    for (const entry of entries) {
      signal?.throwIfAborted();
      const path = `${this.#directory}/${entry.path}`;
      if (entry.kind === "directory") await this.#directoryAt(path);
      else if (entry.kind === "same") await this.#name(entry.of, entry.path);
      else if (entry.kind === "table") fencesAbove = Math.max(fencesAbove, await this.#table(entry));
    }
    // Links last, so that nothing is ever written through one.
    for (const entry of entries) if (entry.kind === "link") await this.#link(entry.path, entry.target);
    return fencesAbove;
  }

  async #file(entry: FileEntry): Promise<void> {
    const path = `${this.#directory}/${entry.path}`;
    await this.#directoryAt(parentOf(path));
    // Left by a restore that was interrupted, in full or in part.
    if (await this.#isWhole(path, entry)) return;
    await removeTree(this.#disk, path);
    const digest = createHash("sha256");
    const { pieces, size, mode } = entry;
    if (size <= smallBytes) {
      const parts: Uint8Array[] = [];
      for (const piece of pieces) parts.push(await this.#piece(piece));
      const bytes = Buffer.concat(parts);
      this.#mustMatch(entry, digest.update(bytes).digest("hex"), bytes.length);
      await this.#disk.createFile(path, bytes, { sync: true, mode });
      return;
    }
    const file = await this.#disk.open(path, "create", { mode });
    let length = 0;
    try {
      for (const piece of pieces) {
        this.#work.options.signal?.throwIfAborted();
        const bytes = await this.#piece(piece);
        digest.update(bytes);
        await file.write(length, bytes);
        length += bytes.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    this.#mustMatch(entry, digest.digest("hex"), length);
  }

  async #isWhole(path: string, { size, sha256: expected }: FileEntry): Promise<boolean> {
    if ((await this.#disk.findStat(path))?.size !== size) return false;
    const file = await this.#disk.open(path, "write").catch(() => undefined);
    if (file === undefined) return false;
    try {
      const digest = createHash("sha256");
      for (let at = 0; at < size;) {
        const bytes = await file.read(at, Math.min(smallBytes, size - at));
        if (bytes.length === 0) return false;
        digest.update(bytes);
        at += bytes.length;
      }
      if (digest.digest("hex") !== expected) return false;
      await file.sync();
      return true;
    } finally {
      await file.close();
    }
  }

  #mustMatch({ path, size, sha256: expected }: FileEntry, found: string, length: number): void {
    if (found === expected && length === size) return;
    const message = `${path} in the backup ${this.#work.manifest.id} is not what it was, so nothing was restored. Restore another backup.`;
    throw holdfastError("CORRUPT", message, { path: `${this.#target.shown}/${path}` });
  }

  async #piece([blob, offset, length]: Piece): Promise<Uint8Array> {
    let reading = this.#blobs.get(blob);
    if (reading === undefined) {
      reading = readBlob(this.#target, blob, sha256);
      this.#blobs.set(blob, reading);
      reading.catch(() => this.#blobs.delete(blob));
      for (const oldest of this.#blobs.keys()) {
        if (this.#blobs.size <= blobsKept) break;
        this.#blobs.delete(oldest);
      }
    }
    return (await reading).subarray(offset, offset + length);
  }

  /** The numbers continue beyond those that the living store can have given out since the backup. */
  async #table({ path, number, deltas }: Entry & { readonly kind: "table" }): Promise<number> {
    const { clock, random } = this.#ports;
    const sinceMs = Math.max(0, clock.wallMs() - this.#work.manifest.startedAtMs);
    const left = Math.floor(Number.MAX_SAFE_INTEGER / turnsPerNumber) - number;
    const jump = Math.min(Math.max(numbersMin, Math.ceil(sinceMs * numbersPerMs)), Math.floor(left / shareOfRest));
    const epoch = { from: number + jump, base: emptyTable, synced: false, deltas };
    const directory = `${this.#directory}/${path}`;
    await removeTree(this.#disk, directory);
    for (const { name, bytes } of encodeEpochOf(tableKind.kind, epoch, random.bytes(16))) {
      await this.#directoryAt(parentOf(`${directory}/${name}`));
      await this.#disk.createFile(`${directory}/${name}`, bytes, { sync: true });
    }
    return epoch.from * turnsPerNumber;
  }

  async #name(of: string, name: string): Promise<void> {
    const [from, path] = [`${this.#directory}/${of}`, `${this.#directory}/${name}`];
    await this.#directoryAt(parentOf(path));
    await removeTree(this.#disk, path);
    const bytes = await this.#disk.readFile(from, smallBytes);
    try {
      await linkOnce(this.#disk, from, path, bytes, { mayRepeat: true });
    } catch (error) {
      if (!isHoldfastError(error, "UNSUPPORTED_DISK") && !hasErrno(error, "EMLINK")) throw error;
      await this.#disk.createFile(path, bytes, { sync: true });
    }
  }

  async #link(name: string, target: string): Promise<void> {
    const path = `${this.#directory}/${name}`;
    await this.#directoryAt(parentOf(path));
    await removeTree(this.#disk, path);
    // On a file system that ignores case, the directory may be another link.
    const above = parentOf(`/${name}`).slice(1);
    if (above !== "" && (await this.#disk.hasLink(this.#directory, above))) throw unfit(name, this.#target.shown);
    if (this.#disk.symbolicLink === undefined) throw diskError("ENOSYS", "link", path);
    await this.#disk.symbolicLink(target, path);
  }

  async #directoryAt(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    if (path.length > this.#directory.length) await this.#directoryAt(parentOf(path));
    try {
      await this.#disk.mkdir(path);
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
      // Left by an interrupted restore.
      if (path !== this.#directory && (await isLink(this.#disk, path))) {
        await removeTree(this.#disk, path);
        await this.#disk.mkdir(path);
      }
    }
    this.#made.add(path);
  }

  /** An interrupted restore, or a program that did not know of it, may have left other files. */
  async #removeOthers(entries: readonly Entry[]): Promise<void> {
    const known = new Set(entries.map(({ path }) => `${this.#directory}/${path}`));
    const tables = entries.filter(({ kind }) => kind === "table").map(({ path }) => `${this.#directory}/${path}`);
    for (const directory of this.#made) {
      if (tables.some((table) => `${directory}/`.startsWith(`${table}/`))) continue;
      for (const name of await listIfThere(this.#disk, directory)) {
        const path = `${directory}/${name}`;
        if (!known.has(path) && !this.#made.has(path) && name !== noteName) await removeTree(this.#disk, path);
      }
    }
  }
}

/**
 * Throws CORRUPT if one entry lies below another that is not a directory: a link there would lead out of the store. Also
 * for one that has the name of our note.
 */
function mustFit(entries: readonly Entry[], where: string): void {
  const kinds = new Map<string, Entry["kind"]>();
  for (const { path, kind } of entries) {
    if (kinds.has(path) || path.split("/", 1)[0] === noteName) throw unfit(path, where);
    kinds.set(path, kind);
  }
  for (const entry of entries) {
    for (let end = entry.path.lastIndexOf("/"); end > 0; end = entry.path.lastIndexOf("/", end - 1))
      if ((kinds.get(entry.path.slice(0, end)) ?? "directory") !== "directory") throw unfit(entry.path, where);
    if (entry.kind === "same" && kinds.get(entry.of) !== "file") throw unfit(entry.path, where);
  }
}

/** Throws INVALID_PATH for a name that the disk would refuse or change. Exported for tests. */
export function mustBeNameable(entries: readonly Pick<Entry, "path">[], { hasWindowsNames }: Volume): void {
  if (!hasWindowsNames) return;
  for (const { path } of entries) {
    const fault = findUnportable(path);
    if (fault === undefined) continue;
    const message = `The backup has ${JSON.stringify(path)}, and ${JSON.stringify(fault.name)} cannot be a name here: ${fault.why}. Nothing was restored. Restore it on Linux, and rename the file.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
}

function unfit(path: string, where: string): Error {
  const message = `The backup in ${where} has two entries that do not fit: ${JSON.stringify(path)}. Nothing was restored. Restore another backup.`;
  return holdfastError("CORRUPT", message, { path: where });
}

function isOf(bytes: Uint8Array, path: string, backup: string): boolean {
  try {
    return decodeRecord(noteKind, bytes, path).backup === backup;
  } catch {
    return false;
  }
}

function inUse(path: string, cause: unknown): Error {
  const message = `${path} cannot be replaced by the restored store: it is a mount point, or another program has just written to it. The store is whole in ${path}.restoring. Name a folder below it, or move that folder.`;
  return holdfastError("INVALID_PATH", message, { path }, cause);
}

function sortedBy<T>(things: readonly T[], by: (thing: T) => string): T[] {
  return [...things].sort((one, other) => (by(one) < by(other) ? -1 : by(one) > by(other) ? 1 : 0));
}
