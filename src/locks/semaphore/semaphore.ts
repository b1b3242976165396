// Semaphore: a lock file at any path that every program can honour (protocol 1.0), taken over only
// when that is safe.
import type { Waiting } from "../../common.ts";
import { checkTimeout, Deadline } from "../../durable/wait/deadline.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { checkMount } from "../../durable/mount/mount-check.ts";
import { isHoldfastError } from "../../errors.ts";
import { diskError, errnoOf } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { notHeld, timedOut } from "./errors.ts";
import { ClaimHold, type SemaphoreHold } from "./hold.ts";
import { infoOf, type LockFileInfo } from "./lock-file.ts";
import { SemaphoreProtocol, type Obstacle, type Won } from "./protocol.ts";
import { checkLockPath, explainPath, resolveLockPath } from "./path.ts";
import { checkTag, settingsOf, type SemaphoreOptions, type SemaphoreSettings } from "./options.ts";
import { isOwnedBy, ownerOf, type SemaphoreClaim } from "./owner.ts";
import { RetryPause } from "./patience.ts";
import type { OwnHold, LocalLock, InProcessLocks } from "./in-process.ts";
import type { Taken } from "./observe.ts";
import { sweepTemps } from "./staleness.ts";
import { workUnder } from "../path/path-hold.ts";

export interface SemaphoreStatus {
  /** True for any lock, stale or not. */
  readonly locked: boolean;
  readonly info?: Readonly<LockFileInfo>;
  readonly stale: boolean;
  /** Held by this process: proven by its token, not by its pid. */
  readonly mine: boolean;
}

export interface SemaphoreWorld {
  /**
   * The ports for a directory. Called at the first use, and again if a symbolic link leads
   * elsewhere.
   */
  readonly openPorts: (directory: string) => Promise<Ports>;
  /** One for the whole process. */
  readonly inProcess: InProcessLocks;
  /** Tests pass known-wrong protocols. */
  readonly Protocol?: typeof SemaphoreProtocol;
  /** Pause between two checks of a hold that its lock still stands. Default 5_000. */
  readonly watchMs?: number;
}

interface Site {
  readonly ports: Ports;
  readonly protocol: SemaphoreProtocol;
}

type Acquiring = Waiting & { tag?: string | undefined };

export class PortsSemaphore {
  /** As given, absolute. */
  readonly path: string;
  readonly #world: SemaphoreWorld;
  readonly #settings: SemaphoreSettings;
  #site: Promise<Site> | undefined;

  constructor(world: SemaphoreWorld, path: string, options: SemaphoreOptions = {}) {
    checkLockPath(path);
    this.path = path;
    this.#world = world;
    this.#settings = settingsOf(options);
  }

  /** Undefined when another process has the lock. */
  async tryAcquire({ tag }: { tag?: string | undefined } = {}): Promise<SemaphoreHold | undefined> {
    checkTag(tag);
    const outcome = await this.#explained((site) => this.#tryOnce(site, tag));
    return outcome instanceof ClaimHold ? outcome : undefined;
  }

  /**
   * LOCK_TIMEOUT names the holder. Default `timeoutMs`: Infinity; 0 tries once. Callers of one
   * process take turns, first come, first served.
   */
  async acquire({ timeoutMs = Infinity, signal, tag }: Acquiring = {}): Promise<SemaphoreHold> {
    checkTimeout(timeoutMs);
    checkTag(tag);
    signal?.throwIfAborted();
    return await this.#explained(async (site) => {
      signal?.throwIfAborted();
      if (timeoutMs > 0) return await this.#wait(site, { timeoutMs, signal, tag });
      const outcome = await this.#tryOnce(site, tag);
      if (outcome instanceof ClaimHold) return outcome;
      throw timedOut(site.ports, this.path, 0, outcome ?? (await this.#look(site)));
    });
  }

  /**
   * Releases in every case; an error of `work` is thrown unchanged. Long work should watch
   * `hold.signal`.
   */
  async withLock<T>(work: (hold: SemaphoreHold) => Promise<T>, options: Acquiring = {}): Promise<T> {
    return await workUnder(await this.acquire(options), work);
  }

  async status(): Promise<SemaphoreStatus> {
    return await this.#explained(async (site) => {
      const observation = await site.protocol.observe();
      if (observation.kind === "free") return { locked: false, stale: false, mine: false };
      const { isStale } = await site.protocol.judge(observation);
      const answer = { locked: true, stale: isStale, mine: this.#isMine(site, observation) };
      return observation.record === undefined ? answer : { ...answer, info: infoOf(observation.record) };
    });
  }

  /**
   * Ends the hold of this process, through whichever semaphore on this path it was taken. NOT_HELD
   * if there is none, unless `force`.
   */
  async release({ force = false }: { force?: boolean | undefined } = {}): Promise<void> {
    await this.#explained(async ({ ports, protocol }) => {
      const { ownerPid } = this.#settings;
      const own = this.#findOwnHold(protocol);
      if (own !== undefined && (await own.end())) return;
      // Before the guard is opened: no guard file may appear beside a file that is not a lock.
      protocol.mustBeLock(await protocol.observe());
      if (ownerPid !== undefined && (await protocol.giveUpFor(ownerOf(ports.host, ownerPid)))) return;
      const who = ownerPid === undefined ? "this process" : `process ${ownerPid}`;
      if (!force) throw notHeld(this.path, who, await protocol.observe());
      await protocol.removeAnyway();
    });
  }

  /**
   * Removes a stale lock and orphaned temporary files; true if it did. INVALID_PATH when the file
   * is not a lock, UNSUPPORTED_DISK where a stale one cannot be removed safely.
   */
  async clean(): Promise<boolean> {
    return await this.#explained(async ({ ports, protocol }) => {
      const removed = await protocol.removeStale();
      return (await sweepTemps(ports, protocol.path)) || removed;
    });
  }

  /**
   * What is unsafe about the directory of the lock, as a sentence for people; undefined when
   * nothing is.
   */
  async findLocationRisk(): Promise<string | undefined> {
    return await this.#explained(async ({ ports, protocol }) => {
      const directory = parentOf(protocol.path);
      const { mode = 0 } = await ports.disk.stat(directory);
      const isOpenToAll = (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
      return isOpenToAll
        ? `${directory} can be written by every user and has no sticky bit: anybody can remove or forge this lock.`
        : undefined;
    });
  }

  /** Undefined when another caller of this process has its turn. */
  async #tryOnce(site: Site, tag: string | undefined): Promise<ClaimHold | Obstacle | undefined> {
    const { inProcess } = this.#world;
    const local = inProcess.at(site.protocol.path);
    if (!local.turn.tryTake()) return undefined;
    const attempt = await this.#orLeave(site, local, () => site.protocol.attempt(tag));
    if ("claim" in attempt && isGuardBusy(attempt)) {
      this.#giveUp(site, local, attempt.claim);
      return undefined;
    }
    if ("claim" in attempt) return await this.#holdOf(site, local, attempt);
    inProcess.leave(site.protocol.path, local);
    return attempt.obstacle;
  }

  async #wait(site: Site, { timeoutMs, signal, tag }: Acquiring): Promise<ClaimHold> {
    const { inProcess } = this.#world;
    const { clock } = site.ports;
    const beganMs = clock.monotonicMs();
    const expired = new Error("the time is up");
    const deadline = new Deadline(clock, { timeoutMs, signal, timedOut: () => expired });
    let obstacle: Obstacle | undefined;
    try {
      for (;;) {
        const local = inProcess.at(site.protocol.path);
        await local.turn.take(deadline.signal);
        const won = await this.#orLeave(site, local, () =>
          this.#attempts(site, tag, deadline.signal, (last) => (obstacle = last)),
        );
        if (!isGuardBusy(won)) return await this.#holdOf(site, local, won, signal);
        // Giving up takes until the stopped process goes on. Then the next caller has its turn.
        this.#giveUp(site, local, won.claim);
      }
    } catch (error) {
      if (error !== expired) throw error;
      throw timedOut(site.ports, this.path, clock.monotonicMs() - beganMs, obstacle ?? (await this.#look(site)));
    } finally {
      deadline.cancel();
    }
  }

  async #attempts(
    { ports, protocol }: Site,
    tag: string | undefined,
    until: AbortSignal,
    onObstacle: (obstacle: Obstacle) => void,
  ): Promise<Won> {
    let patience: RetryPause | undefined;
    try {
      for (;;) {
        patience?.begin();
        const attempt = await protocol.attempt(tag);
        if ("claim" in attempt) return attempt;
        onObstacle(attempt.obstacle);
        until.throwIfAborted();
        if (patience === undefined) {
          // Watch first, then observe again, then pause: a release between the first observation
          // and the watch would otherwise go unnoticed.
          patience = new RetryPause(ports, parentOf(protocol.path), this.#settings.retryMs);
          continue;
        }
        await patience.pause(until);
      }
    } finally {
      patience?.end();
    }
  }

  /** A failure before there is a hold gives up the turn. A hold gives it up when it ends. */
  async #orLeave<T>({ protocol }: Site, local: LocalLock, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      this.#world.inProcess.leave(protocol.path, local);
      throw error;
    }
  }

  async #holdOf(site: Site, local: LocalLock, { claim, doubt }: Won, signal?: AbortSignal): Promise<ClaimHold> {
    const hold = this.#newHold(site, local, claim);
    if (doubt === undefined && !signal?.aborted) return hold;
    // The caller has aborted, or cannot be told for sure that it holds the lock. If giving up fails
    // now, the hold retries: while this process lives no other process may take the lock.
    await hold.end().catch(() => undefined);
    signal?.throwIfAborted();
    throw doubt;
  }

  /** Gives up in the background. The turn stays taken until that is done. */
  #giveUp(site: Site, local: LocalLock, claim: SemaphoreClaim): void {
    // The hold itself retries after a failure.
    this.#newHold(site, local, claim)
      .end()
      .catch(() => undefined);
  }

  #newHold({ ports, protocol }: Site, local: LocalLock, claim: SemaphoreClaim): ClaimHold {
    const { inProcess, watchMs = 5_000 } = this.#world;
    const onEnd = (): void => {
      local.hold = undefined;
      inProcess.leave(protocol.path, local);
    };
    const hold = new ClaimHold({ clock: ports.clock, protocol, claim, watchMs, onEnd });
    local.hold = { token: hold.token, ownerPid: this.#settings.ownerPid, end: () => hold.end() };
    return hold;
  }

  #findOwnHold({ path }: SemaphoreProtocol): OwnHold | undefined {
    const hold = this.#world.inProcess.find(path)?.hold;
    return hold?.ownerPid === this.#settings.ownerPid ? hold : undefined;
  }

  #isMine({ ports, protocol }: Site, { record }: Taken): boolean {
    if (record?.token === undefined) return false;
    const { ownerPid } = this.#settings;
    const own = this.#findOwnHold(protocol);
    return own?.token === record.token || (ownerPid !== undefined && isOwnedBy(record, ownerOf(ports.host, ownerPid)));
  }

  /** The present obstacle, for an error message. */
  async #look({ protocol }: Site): Promise<Obstacle> {
    const observation = await protocol.observe();
    if (observation.kind === "free") return { observation, why: "it was just released" };
    return { observation, why: (await protocol.judge(observation)).why };
  }

  /** Runs an operation where the lock lies, and says what a disk error means for the lock. */
  async #explained<T>(operation: (site: Site) => Promise<T>): Promise<T> {
    try {
      this.#site ??= this.#open();
      return await operation(await this.#site);
    } catch (error) {
      throw explain(error, this.path);
    }
  }

  async #open(): Promise<Site> {
    try {
      const { openPorts, Protocol = SemaphoreProtocol } = this.#world;
      const directory = parentOf(this.path);
      const nearby = await openPorts(directory);
      const path = await resolveLockPath(nearby.disk, this.path);
      // A symbolic link may lead to another file system.
      const ports = parentOf(path) === directory ? nearby : await openPorts(parentOf(path));
      checkMount(ports, parentOf(path));
      return { ports, protocol: new Protocol(ports, path, this.#settings) };
    } catch (error) {
      // What is missing now may be there at the next call.
      this.#site = undefined;
      throw error;
    }
  }
}

/**
 * The lock was won, but could not be confirmed: a process that seems to be stopped has the guard.
 */
function isGuardBusy({ doubt }: Won): boolean {
  return isHoldfastError(doubt, "LOCK_TIMEOUT");
}

function explain(error: unknown, path: string): unknown {
  const explained = explainPath(error, path);
  if (explained !== error || isHoldfastError(error, "INVALID_PATH")) return explained;
  const errno = errnoOf(error);
  return errno === undefined ? error : diskError(errno, "lock", path, error);
}
