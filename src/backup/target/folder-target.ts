// A target in a folder of any file system.
import {
  ensureDirectory,
  isThere,
  listIfThere,
  parentOf,
  removeTree,
  syncNames,
  unlinkIfThere,
} from "../../durable/publish/directory.ts";
import { moveOnce, renameOnce } from "../../durable/publish/publish.ts";
import { randomName } from "../../format/id.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Random } from "../../ports/random.ts";
import type { BackupTarget, TargetFile } from "./target.ts";

/** Larger than any file of a target: one line of an index with a file of 50 TB. */
const bytesMax = 512 * 1024 * 1024;
/** The name of a file that is being written. */
const tempPattern = /^tmp-/;
/** Such a file is a leftover if it is this old. */
const leftoverMs = 24 * 3_600_000;

export class FolderTarget implements BackupTarget {
  readonly shown: string;
  readonly #disk: Disk;
  readonly #random: Random;
  readonly #directory: string;
  readonly #made = new Set<string>();
  readonly #unsettled = new Set<string>();
  #settling: Promise<void> = Promise.resolve();

  constructor({ disk, random }: { readonly disk: Disk; readonly random: Random }, directory: string) {
    this.#disk = disk;
    this.#random = random;
    this.#directory = directory;
    this.shown = directory;
  }

  async find(name: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#disk.readFile(this.#path(name), bytesMax);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    const path = this.#path(name);
    const directory = await this.#directoryOf(path);
    const temp = `${directory}/tmp-${randomName(this.#random.bytes(16))}`;
    try {
      await this.#disk.createFile(temp, bytes, { sync: true });
      if (!(await renameOnce(this.#disk, temp, path))) throw diskError("ENOENT", "rename", temp);
    } catch (error) {
      // On a full disk the leftover would take the space that the next attempt needs.
      await unlinkIfThere(this.#disk, temp).catch(() => undefined);
      throw error;
    }
    this.#unsettled.add(directory);
  }

  adopt(name: string): void {
    this.#unsettled.add(parentOf(this.#path(name)));
  }

  /** One at a time: what another call is syncing is not durable yet. */
  async settle(): Promise<void> {
    const settling = this.#settling.catch(() => undefined).then(() => this.#syncAll());
    this.#settling = settling;
    await settling;
  }

  async #syncAll(): Promise<void> {
    for (const directory of [...this.#unsettled]) {
      // Before the sync: it need not have what is put meanwhile.
      this.#unsettled.delete(directory);
      try {
        if (await isThere(this.#disk, directory)) await syncNames(this.#disk, directory);
      } catch (error) {
        this.#unsettled.add(directory);
        throw error;
      }
    }
  }

  async *list(folder: string): AsyncIterable<TargetFile> {
    const directory = this.#path(folder.slice(0, -1));
    for (const each of await listIfThere(this.#disk, directory)) {
      const stat = await this.#disk.findStat(`${directory}/${each}`);
      if (stat?.kind === "directory") yield* this.list(`${folder}${each}/`);
      else if (stat !== undefined && tempPattern.test(each)) await this.#sweep(`${directory}/${each}`, stat.mtimeMs);
      else if (stat !== undefined) yield { name: folder + each, size: stat.size, atMs: stat.mtimeMs };
    }
  }

  async remove(name: string): Promise<void> {
    await removeTree(this.#disk, this.#path(name));
    this.#unsettled.add(parentOf(this.#path(name)));
  }

  async move(from: string, to: string): Promise<boolean> {
    const [source, path] = [this.#path(from), this.#path(to)];
    const directory = await this.#directoryOf(path);
    if (!(await moveOnce(this.#disk, source, path))) return false;
    await syncNames(this.#disk, directory);
    return true;
  }

  async nowMs(): Promise<number> {
    const temp = `${await this.#directoryOf(this.#path("clock"))}/tmp-${randomName(this.#random.bytes(16))}`;
    await this.#disk.createFile(temp, new Uint8Array(), { sync: false });
    try {
      return (await this.#disk.stat(temp)).mtimeMs;
    } finally {
      await unlinkIfThere(this.#disk, temp);
    }
  }

  async isEmpty(): Promise<boolean> {
    // A process that was killed during its first put leaves a file that is no other program's.
    return (await listIfThere(this.#disk, this.#directory)).every((name) => tempPattern.test(name));
  }

  /** A process that was killed while it wrote leaves its file. */
  async #sweep(path: string, atMs: number): Promise<void> {
    if ((await this.nowMs()) - atMs > leftoverMs) await removeTree(this.#disk, path);
  }

  async #directoryOf(path: string): Promise<string> {
    const directory = parentOf(path);
    if (!this.#made.has(directory)) await ensureDirectory(this.#disk, directory);
    this.#made.add(directory);
    return directory;
  }

  #path(name: string): string {
    return `${this.#directory}/${name}`;
  }
}
