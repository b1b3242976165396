// Lock files of the `.ovlock` kind as found on the disk: which program's they are, whether they
// still count, and which one excludes a request.
import type { BlockingLock, LockMode } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { holderInfo } from "../../durable/liveness/holder-record.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Claim } from "../table/claim.ts";
import { ancestorsOf, lockFilesOf, parseToken } from "./names.ts";
import type { InteropTree, Target } from "./tree.ts";

/** More than any token has. A larger file is not a lock file. */
const bytesMax = 1024;
/** Unreadable files that are watched at the same time. */
const watchedMax = 1000;

/** A lock file on the disk. */
export interface FoundLock {
  readonly path: string;
  /** Identity of the file on its disk. */
  readonly identity: string;
  /** Empty when it cannot be read. */
  readonly handle: string;
  /** "tree" when the file cannot be read: it may be a tree lock. */
  readonly mode: LockMode;
  /** When it was written or refreshed last. */
  readonly timeMs: number;
  /**
   * Not refreshed for a lease, by its own time; or, if that time is unusable, unchanged for a
   * lease.
   */
  readonly isStale: boolean;
  /** Made by a process that shares this lock table, which decides about it. */
  readonly isOurs: boolean;
}

export interface ForeignLocksOptions {
  readonly leaseMs: number;
  /** How the handles of processes that share this lock table begin. */
  readonly ourPrefix: string;
}

export class ForeignLocks {
  readonly #ground: Ground;
  readonly #tree: InteropTree;
  readonly #options: ForeignLocksOptions;
  /** Files whose time is unusable, and since when they are unchanged by this process's clock. */
  readonly #watched = new Map<string, { readonly look: string; readonly sinceMs: number }>();

  constructor(ground: Ground, tree: InteropTree, options: ForeignLocksOptions) {
    this.#ground = ground;
    this.#tree = tree;
    this.#options = options;
  }

  /**
   * The first live foreign lock that excludes one of `targets`: on the same path, a tree lock above
   * it, or any lock below a tree.
   */
  async findBlocker(targets: readonly Target[]): Promise<FoundLock | undefined> {
    for (const { path, mode } of targets) {
      for (const file of lockFilesOf(path)) {
        const found = await this.findLive(file);
        if (found !== undefined) return found;
      }
      // Up to the root of the file system: a foreign tree may be larger than this one.
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

  /** The lock file, if it is foreign and live. */
  async findLive(file: string): Promise<FoundLock | undefined> {
    const found = await this.look(file);
    return found === undefined || found.isOurs || found.isStale ? undefined : found;
  }

  async look(path: string): Promise<FoundLock | undefined> {
    const stat = await this.#tree.findStat(path);
    // Opening a pipe would wait for ever.
    const text = stat?.kind === "file" ? await this.#findText(path) : "";
    if (stat === undefined || text === undefined) return undefined;
    const { leaseMs, ourPrefix } = this.#options;
    const token = parseToken(text);
    const { handle = "", timeMs = stat.mtimeMs, mode = "tree" } = token ?? {};
    const aheadMs = timeMs - this.#ground.ports.clock.wallMs();
    // A time more than a lease ahead is of a clock that is unusable here. Then the lock counts as
    // long as its file keeps changing.
    const isStale =
      token === undefined || aheadMs > leaseMs ? await this.#isUntouched(path, stat, text) : -aheadMs > leaseMs;
    return { path, identity: stat.identity, handle, mode, timeMs, isStale, isOurs: handle.startsWith(ourPrefix) };
  }

  /**
   * LOCK_TIMEOUT, with what is known of a foreign lock. Names the lock file: the one beside a path
   * does not tell which path it is for.
   */
  refused(asked: readonly Claim[], waitedMs: number, { path: file, handle: id, mode, timeMs }: FoundLock): Error {
    const path = asked.map((claim) => claim.path || ".").join(", ");
    // The time may be beyond the range of dates.
    const since = new Date(Number.isNaN(new Date(timeMs).getTime()) ? this.#ground.ports.clock.wallMs() : timeMs);
    const holder = holderInfo(since, { id });
    const below = this.#tree.root === "/" ? "/" : `${this.#tree.root}/`;
    const shown = file.startsWith(below) ? file.slice(below.length) : file;
    const blocker: BlockingLock = { path: shown, mode, shared: false, holder, since };
    const message = `${path} could not be locked within ${waitedMs} ms (option timeoutMs): a foreign program has it (${mode}) by ${file}, written ${since.toISOString()}${id === "" ? "" : ` by ${id}`}.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [blocker] });
  }

  /** By two stamps of the server, or unchanged for a lease of this process's clock. */
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

  /** Undefined when the file is gone; empty when it is not a token or may not be read. */
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
