// One lock file that we keep for foreign programs: how it appears, stays fresh and goes, without ever touching one that is not ours.
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

/** Names that come and go between two looks. */
const triesMax = 10;
/** One of ours that is older than this part of a lease is refreshed by nobody any more: it is replaced before foreign programs take it for stale. */
const freshPart = 1 / 2;

export interface InteropDirectory {
  readonly ground: Ground;
  readonly foreign: ForeignLocks;
  /** Of this process, in all its lock files. */
  readonly handle: string;
  readonly leaseMs: number;
}

export class InteropLockFile {
  readonly path: string;
  /** Foreign programs know one lock at a path; we may have several holds there. */
  readonly users: Map<Grant, LockMode> = new Map();
  readonly #place: InteropDirectory;
  /** Of the file that we made last. It may have another's name by now, or none: then what is written to it harms nobody. */
  #file: DiskFile | undefined;

  constructor(place: InteropDirectory, path: string) {
    this.#place = place;
    this.path = path;
  }

  async putFor(grant: Grant, mode: LockMode): Promise<FoundLock | undefined> {
    this.users.set(grant, mode);
    return await this.put();
  }

  /**
   * Puts the lock file there, or makes it say what it should and when. Returns the live foreign one that is there instead. Where the directory for
   * it is missing, nothing is written: a mirror makes no directories.
   */
  async put(): Promise<FoundLock | undefined> {
    const { ground, foreign, handle, leaseMs } = this.#place;
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
      // Looked at before it is written over: a foreign program may have written its own token into our file.
      if (found.handle === handle && file !== undefined && found.identity === (await file.stat()).identity) {
        await this.#write(file, bytes);
        return undefined;
      }
      // Another process with a shared hold keeps one there, after ours was.
      const isKept = found.isOurs && found.handle !== handle && timeMs - found.timeMs < leaseMs * freshPart;
      if (file !== undefined && isKept) return undefined;
      // A stale foreign one at this very name is replaced, in one step and by nothing but this: it is the only way in which we end what we did not write.
      await this.#publish(bytes, "rename");
      return undefined;
    }
    throw diskError("EEXIST", "link", this.path);
  }

  /** Takes it away if it still is ours. Somebody may replace it between the look and the removal; he puts his own back when he refreshes it. */
  async remove(): Promise<void> {
    try {
      await removeOwn(this.#place, this.path);
    } finally {
      await this.leave();
    }
  }

  /** Leaves it to become stale, or to be replaced. */
  async leave(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /** False when the name was taken meanwhile. It appears complete: readers of a file that is written in place see it empty. */
  async #publish(bytes: Uint8Array, how: "link" | "rename"): Promise<boolean> {
    const { disk, random } = this.#place.ground.ports;
    const { staging } = this.#place.ground;
    const temp = `${await staging.directory()}/${randomName(random.bytes(16))}`;
    const file = await disk.open(temp, "create");
    try {
      await this.#write(file, bytes);
      await disk[how](temp, this.path);
    } catch (error) {
      await file.close();
      await discard(staging, temp);
      if (how === "link" && hasErrno(error, "EEXIST")) return false;
      // Its directory is missing.
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
    // On a share a write alone stays in this machine's cache. It need not survive a power cut, because the hold does not.
    if (this.#place.ground.ports.disk.volume.kind !== "local") await file.sync();
  }
}

/** Removes the lock file at `path` if this process made it. */
export async function removeOwn({ ground, foreign, handle }: InteropDirectory, path: string): Promise<void> {
  if ((await foreign.look(path))?.handle === handle) await unlinkIfThere(ground.ports.disk, path);
}
