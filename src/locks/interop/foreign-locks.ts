// Lock files of the `.ovlock` kind found on the disk: who made them, whether they are still live, and which one
// excludes a request.
import type { BlockingLock, LockMode } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { holderInfo } from "../../durable/liveness/holder-record.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Claim } from "../table/conflict.ts";
import { ancestorsOf, lockFilesOf, parseToken } from "./names.ts";
import type { InteropTree, LockedPath } from "./tree.ts";

/** No token is larger, so a larger file is not a lock file. */
const bytesMax = 1024;
/** The largest number of unreadable files that are watched at once. */
const watchedMax = 1000;

/** A lock file on the disk. */
export interface FoundLock {
  readonly path: string;
  /** Identity of the file in its file system. */
  readonly identity: string;
  /** Empty if the file cannot be read. */
  readonly handle: string;
  /** "tree" if the file cannot be read, because it may be a tree lock. */
  readonly mode: LockMode;
  /** When it was last written or refreshed. */
  readonly timeMs: number;
  /**
   * True if its own time says that it was not refreshed for a lease. If that time is unusable: true if the file did
   * not change for a lease.
   */
  readonly isStale: boolean;
  /** True if a process that shares this lock table made it. Then the table decides, not the file. */
  readonly isOurs: boolean;
}

export interface ForeignLocksOptions {
  readonly leaseMs: number;
  /** The prefix of the handles of all processes that share this lock table. */
  readonly ourPrefix: string;
}

export class ForeignLocks {
  readonly #ground: Ground;
  readonly #tree: InteropTree;
  readonly #options: ForeignLocksOptions;
  /** Files whose time is unusable, and since when this process has seen them unchanged. */
  readonly #watched = new Map<string, { readonly look: string; readonly sinceMs: number }>();

  constructor(ground: Ground, tree: InteropTree, options: ForeignLocksOptions) {
    this.#ground = ground;
    this.#tree = tree;
    this.#options = options;
  }

  /**
   * Returns the first live foreign lock that excludes one of `targets`: on the same path, a tree lock above it, or
   * any lock below a tree.
   */
  async findBlocker(targets: readonly LockedPath[]): Promise<FoundLock | undefined> {
    for (const { path, mode } of targets) {
      for (const file of lockFilesOf(path)) {
        const found = await this.findLive(file);
        if (found !== undefined) return found;
      }
      // Searches up to the root of the file system: a foreign tree may be larger than this one.
      for (const file of ancestorsOf(path).flatMap(lockFilesOf)) {
        const found = await this.findLive(file);
        if (found?.mode === "tree") return found;
      }
      if (mode === "tree")
        for await (const file of this.#tree.lockFilesBelow(path)) {
          const found = await this.findLive(file);
          if (found !== undefined) return found;
        }
    }
    return undefined;
  }

  /** Returns the lock file if it is foreign and live. */
  async findLive(file: string): Promise<FoundLock | undefined> {
    const found = await this.look(file);
    return found === undefined || found.isOurs || found.isStale ? undefined : found;
  }

  async look(path: string): Promise<FoundLock | undefined> {
    const stat = await this.#tree.findStat(path);
    // Never open another kind: opening a pipe would block forever.
    const text = stat?.kind === "file" ? await this.#findText(path) : "";
    if (stat === undefined || text === undefined) return undefined;
    const { leaseMs, ourPrefix } = this.#options;
    const token = parseToken(text);
    const { handle = "", timeMs = stat.mtimeMs, mode = "tree" } = token ?? {};
    const aheadMs = timeMs - this.#ground.ports.clock.wallMs();
    // A time more than a lease in the future comes from a clock that is unusable here. Such a lock is live as long as
    // its file keeps changing.
    const isStale =
      token === undefined || aheadMs > leaseMs ? await this.#isUntouched(path, stat, text) : -aheadMs > leaseMs;
    return { path, identity: stat.identity, handle, mode, timeMs, isStale, isOurs: handle.startsWith(ourPrefix) };
  }

  /**
   * Returns LOCK_TIMEOUT with what is known of a foreign lock. It names the lock file, because the name of a sidecar
   * does not show which path it locks.
   */
  refused(asked: readonly Claim[], waitedMs: number, { path: file, handle: id, mode, timeMs }: FoundLock): Error {
    const path = asked.map((claim) => claim.path || ".").join(", ");
    // The time may be outside the range of dates.
    const since = new Date(Number.isNaN(new Date(timeMs).getTime()) ? this.#ground.ports.clock.wallMs() : timeMs);
    const holder = holderInfo(since, { id });
    const below = this.#tree.root === "/" ? "/" : `${this.#tree.root}/`;
    const shown = file.startsWith(below) ? file.slice(below.length) : file;
    const blocker: BlockingLock = { path: shown, mode, shared: false, holder, since };
    const message = `${path} could not be locked within ${waitedMs} ms (option timeoutMs): a foreign program has it (${mode}) by ${file}, written ${since.toISOString()}${id === "" ? "" : ` by ${id}`}.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [blocker] });
  }

  /**
   * True if the server's stamps show that the file is older than a lease, or if this process saw it unchanged for a
   * lease.
   */
  async #isUntouched(path: string, { identity, mtimeMs, size }: FileStat, text: string): Promise<boolean> {
    const { ports, staging } = this.#ground;
    const { leaseMs } = this.#options;
    const nowMs = ports.clock.monotonicMs();
    const look = [identity, mtimeMs, size, text].join(" ");
    const watched = this.#watched.get(path);
    if (watched?.look === look && nowMs - watched.sinceMs > leaseMs) return true;
    if (watched?.look !== look) {
      this.#watched.delete(path);
      this.#watched.set(path, { look, sinceMs: nowMs });
      const [oldest] = this.#watched.keys();
      if (this.#watched.size > watchedMax && oldest !== undefined) this.#watched.delete(oldest);
    }
    return await withServerClock(staging, async (clock) => (await clock.ageMsOf(mtimeMs)) > leaseMs);
  }

  /** Returns undefined if the file is gone, and "" if it is not a token or may not be read. */
  async #findText(path: string): Promise<string | undefined> {
    try {
      return new TextDecoder().decode(await this.#ground.ports.disk.readFile(path, bytesMax));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return undefined;
      if (hasErrno(error, "EFBIG", "EISDIR", "EACCES", "EPERM")) return "";
      throw error;
    }
  }
}
