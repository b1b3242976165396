// A disk whose read operations wait while the server of a share is unreachable. Only reads wait. A
// failed change may have happened, and by the time the server is back another process may have used
// the same name. The caller must determine the outcome by content, which is a read and waits here.
import type { Clock } from "./clock.ts";
import { diskError, isOutage } from "./disk-error.ts";
import type { CreateFileOptions, Disk, DiskFile, FileStat, OpenFileOptions, Volume } from "./disk.ts";

/**
 * How long a server may be unreachable before a read fails: longer than a restart, or than a cable
 * that is unplugged and plugged in again.
 */
const outageMsMax = 60_000;
const pauseMs = { first: 50, max: 1000 };
const growth = 2;

/** Returns `disk` itself if it is local: a local disk does not disappear and come back. */
export function patientDisk(disk: Disk, clock: Clock): Disk {
  return disk.volume.kind === "local" ? disk : new PatientDisk(disk, clock);
}

class PatientDisk implements Disk {
  readonly #disk: Disk;
  readonly #clock: Clock;

  constructor(disk: Disk, clock: Clock) {
    this.#disk = disk;
    this.#clock = clock;
  }

  get volume(): Volume {
    return this.#disk.volume;
  }

  readFile(path: string, bytesMax: number): Promise<Uint8Array> {
    return this.#look(() => this.#disk.readFile(path, bytesMax));
  }
  canOpen(path: string): Promise<boolean> {
    return this.#look(() => this.#disk.canOpen(path));
  }
  list(path: string): Promise<string[]> {
    return this.#look(() => this.#disk.list(path));
  }
  listSome(path: string, count: number): Promise<string[]> {
    return this.#look(() => this.#disk.listSome(path, count));
  }
  stat(path: string): Promise<FileStat> {
    return this.#look(() => this.#disk.stat(path));
  }
  findStat(path: string): Promise<FileStat | undefined> {
    return this.#look(() => this.#disk.findStat(path));
  }
  look(path: string): Promise<FileStat> {
    return this.#look(() => this.#disk.look(path));
  }
  async mayRename(path: string): Promise<boolean> {
    return await this.#look(async () => (await this.#disk.mayRename?.(path)) ?? true);
  }
  realPath(path: string): Promise<string> {
    return this.#look(() => this.#disk.realPath(path));
  }
  hasLink(root: string, path: string): Promise<boolean> {
    return this.#look(() => this.#disk.hasLink(root, path));
  }
  readLink(path: string): Promise<string> {
    return this.#look(() => this.#disk.readLink(path));
  }
  /** Repeated like a read, because it is idempotent and has no visible effect. */
  syncDirectory(path: string): Promise<string | void> {
    return this.#look(() => this.#disk.syncDirectory(path));
  }
  open(path: string, mode: "read" | "write" | "create", options?: OpenFileOptions): Promise<DiskFile> {
    const open = (): Promise<DiskFile> => this.#disk.open(path, mode, options);
    return mode === "create" ? open() : this.#look(open);
  }

  createFile(path: string, bytes: Uint8Array, options: CreateFileOptions): Promise<void> {
    return this.#disk.createFile(path, bytes, options);
  }
  link(from: string, to: string): Promise<void> {
    return this.#disk.link(from, to);
  }
  async symbolicLink(target: string, path: string): Promise<void> {
    if (this.#disk.symbolicLink === undefined) throw diskError("ENOSYS", "link", path);
    await this.#disk.symbolicLink(target, path);
  }
  rename(from: string, to: string): Promise<void> {
    return this.#disk.rename(from, to);
  }
  unlink(path: string): Promise<void> {
    return this.#disk.unlink(path);
  }
  mkdir(path: string): Promise<void> {
    return this.#disk.mkdir(path);
  }
  rmdir(path: string): Promise<void> {
    return this.#disk.rmdir(path);
  }

  async #look<T>(look: () => Promise<T>): Promise<T> {
    let sinceMs: number | undefined;
    for (let waitMs = pauseMs.first; ; waitMs = Math.min(waitMs * growth, pauseMs.max)) {
      try {
        return await look();
      } catch (error) {
        if (!isOutage(error)) throw error;
        sinceMs ??= this.#clock.monotonicMs();
        if (this.#clock.monotonicMs() - sinceMs >= outageMsMax) throw error;
      }
      await this.#clock.sleep(waitMs);
    }
  }
}
