// Lock files of the `.ovlock` kind as they are found on the disk: whose they are, whether they still count, and which of them stands in the way.
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

/** Larger than any token: what has more is none, whatever its size. */
const bytesMax = 1024;
/** Unreadable files that are watched at a time. */
const watchedMax = 1000;

/** A lock file that is there. */
export interface FoundLock {
  readonly path: string;
  /** Of the file, as the disk tells it. */
  readonly identity: string;
  /** Empty when it cannot be read. */
  readonly handle: string;
  /** "tree" when it cannot be read: it may be one. */
  readonly mode: LockMode;
  /** When it was written or refreshed last. */
  readonly timeMs: number;
  /** Its time is more than a lease ago; or its time says nothing, and nobody has touched it for so long. */
  readonly isStale: boolean;
  /** Made by a Holdfast of the same lock table, which decides about it. */
  readonly isOurs: boolean;
}

export interface ForeignLocksOptions {
  readonly leaseMs: number;
  /** How the handles of those begin that share our lock table. */
  readonly ourPrefix: string;
}

export class ForeignLocks {
  readonly #ground: Ground;
  readonly #tree: InteropTree;
  readonly #options: ForeignLocksOptions;
  /** Of files whose time says nothing: since when they have been as they are, by our own clock. */
  readonly #watched = new Map<string, { readonly look: string; readonly sinceMs: number }>();

  constructor(ground: Ground, tree: InteropTree, options: ForeignLocksOptions) {
    this.#ground = ground;
    this.#tree = tree;
    this.#options = options;
  }

  /** The first live foreign lock that excludes one of `targets`: on the same path, a tree lock above it, or anything below a tree. */
  async findBlocker(targets: readonly Target[]): Promise<FoundLock | undefined> {
    for (const { path, mode } of targets) {
      for (const file of lockFilesOf(path)) {
        const found = await this.findLive(file);
        if (found !== undefined) return found;
      }
      // Up to the root of the file system: the other program's tree may be larger than ours.
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

  /** One that is foreign and counts. */
  async findLive(file: string): Promise<FoundLock | undefined> {
    const found = await this.look(file);
    return found === undefined || found.isOurs || found.isStale ? undefined : found;
  }

  async look(path: string): Promise<FoundLock | undefined> {
    const stat = await this.#tree.findStat(path);
    // Opening anything but a file may wait for ever (a pipe).
    const text = stat?.kind === "file" ? await this.#findText(path) : "";
    if (stat === undefined || text === undefined) return undefined;
    const { leaseMs, ourPrefix } = this.#options;
    const token = parseToken(text);
    const { handle = "", timeMs = stat.mtimeMs, mode = "tree" } = token ?? {};
    const aheadMs = timeMs - this.#ground.ports.clock.wallMs();
    // A time further ahead than a lease is of a clock that says nothing here. Then it counts as long as somebody keeps changing it.
    const isStale =
      token === undefined || aheadMs > leaseMs ? await this.#isUntouched(path, stat, text) : -aheadMs > leaseMs;
    return { path, identity: stat.identity, handle, mode, timeMs, isStale, isOurs: handle.startsWith(ourPrefix) };
  }

  /** LOCK_TIMEOUT, with what is known of a foreign lock. Its path is that of the lock file: one beside a path does not tell which path it is for. */
  refused(asked: readonly Claim[], waitedMs: number, { path: file, handle: id, mode, timeMs }: FoundLock): Error {
    const path = asked.map((claim) => claim.path || ".").join(", ");
    // A time may be so far ahead that no date has it.
    const since = new Date(Number.isNaN(new Date(timeMs).getTime()) ? this.#ground.ports.clock.wallMs() : timeMs);
    const holder = holderInfo(since, { id });
    const below = this.#tree.root === "/" ? "/" : `${this.#tree.root}/`;
    const shown = file.startsWith(below) ? file.slice(below.length) : file;
    const blocker: BlockingLock = { path: shown, mode, shared: false, holder, since };
    const message = `${path} could not be locked within ${waitedMs} ms (option timeoutMs): a foreign program has it (${mode}) by ${file}, written ${since.toISOString()}${id === "" ? "" : ` by ${id}`}.`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [blocker] });
  }

  /** By two stamps of the server, or because it has not changed for a lease of our own clock. */
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

  /** Undefined when it is gone; empty when it cannot be a token, or may not be read. */
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
