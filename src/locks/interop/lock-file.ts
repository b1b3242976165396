// One lock file that this process maintains for foreign programs: creates, refreshes and removes it without touching
// files of other programs.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { discard } from "../../durable/publish/staging.ts";
import type { LockMode } from "../../common.ts";
import { randomName } from "../../format/id.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { DiskFile } from "../../ports/disk.ts";
import type { ForeignLocks, FoundLock } from "./foreign-locks.ts";
import type { Grant } from "../path/grant.ts";
import { encodeToken } from "./names.ts";

/** The largest number of tries while other programs take and free the name. */
const triesMax = 10;
/**
 * Another process's file of ours that is older than this part of a lease is no longer refreshed. It is replaced
 * before foreign programs consider it stale.
 */
const freshPart = 1 / 2;

export interface InteropContext {
  readonly ground: Ground;
  readonly foreign: ForeignLocks;
  /** Identifies this process; the same in all its lock files. */
  readonly handle: string;
  readonly leaseMs: number;
}

export class InteropLockFile {
  readonly path: string;
  /**
   * The grants that share this file: foreign programs know one lock per path, but this process may have several holds
   * there.
   */
  readonly users: Map<Grant, LockMode> = new Map();
  readonly #context: InteropContext;
  /**
   * The file that this process created last. If another program has replaced or removed it, writing to it has no
   * effect.
   */
  #file: DiskFile | undefined;

  constructor(context: InteropContext, path: string) {
    this.#context = context;
    this.path = path;
  }

  async putFor(grant: Grant, mode: LockMode): Promise<FoundLock | undefined> {
    this.users.set(grant, mode);
    return await this.put();
  }

  /**
   * Creates the lock file, or refreshes its mode and time. Returns a live foreign lock that has its name instead. If
   * the directory does not exist, writes nothing: interop creates no directories.
   */
  async put(): Promise<FoundLock | undefined> {
    const { ground, foreign, handle, leaseMs } = this.#context;
    const mode = [...this.users.values()].includes("tree") ? "tree" : "exact";
    const timeMs = ground.ports.clock.wallMs();
    const bytes = new TextEncoder().encode(encodeToken({ handle, timeMs, mode }));
    for (let tries = 0; tries < triesMax; tries++) {
      const found = await foreign.look(this.path);
      if (found === undefined) {
        if (await this.#publish(bytes, "link")) return undefined;
        continue;
      }
      if (!found.isOurs && !found.isStale) return found;
      const file = this.#file;
      // Compare before writing: a foreign program may have written its own token into our file.
      if (found.handle === handle && file !== undefined && found.identity === (await file.stat()).identity) {
        await this.#write(file, bytes);
        return undefined;
      }
      // Another process with a shared hold refreshes the file.
      const isKept = found.isOurs && found.handle !== handle && timeMs - found.timeMs < leaseMs * freshPart;
      if (file !== undefined && isKept) return undefined;
      // Replaces a stale foreign file in one step. Holdfast removes foreign locks in no other case.
      await this.#publish(bytes, "rename");
      return undefined;
    }
    throw diskError("EEXIST", "link", this.path);
  }

  /**
   * Removes the file if it is still ours. Another process may replace it between check and removal; its next refresh
   * then restores it.
   */
  async remove(): Promise<void> {
    try {
      await removeOwn(this.#context, this.path);
    } finally {
      await this.leave();
    }
  }

  /** Leaves the file on the disk: it becomes stale, or another process replaces it. */
  async leave(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /**
   * Returns false if the name was taken meanwhile. Publishes a complete file: readers would see one that is written
   * in place as empty.
   */
  async #publish(bytes: Uint8Array, how: "link" | "rename"): Promise<boolean> {
    const { disk, random } = this.#context.ground.ports;
    const { staging } = this.#context.ground;
    const temp = `${await staging.directory()}/${randomName(random.bytes(16))}`;
    const file = await disk.open(temp, "create");
    try {
      await this.#write(file, bytes);
      await disk[how](temp, this.path);
    } catch (error) {
      await file.close();
      await discard(staging, temp);
      if (how === "link" && hasErrno(error, "EEXIST")) return false;
      // The directory does not exist.
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return true;
      throw error;
    }
    if (how === "link") await discard(staging, temp);
    await this.leave();
    this.#file = file;
    return true;
  }

  async #write(file: DiskFile, bytes: Uint8Array): Promise<void> {
    await file.write(0, bytes);
    // On a share an unsynced write stays in this machine's cache. It need not survive a power cut, because the hold
    // does not either.
    if (this.#context.ground.ports.disk.volume.kind !== "local") await file.sync();
  }
}

/** Removes the lock file at `path` if this process made it. */
export async function removeOwn({ ground, foreign, handle }: InteropContext, path: string): Promise<void> {
  if ((await foreign.look(path))?.handle === handle) await unlinkIfThere(ground.ports.disk, path);
}
