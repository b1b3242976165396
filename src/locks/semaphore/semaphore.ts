// Semaphore: a lock file at any path that every program can honour (protocol 1.0). It is taken over only when that is
// safe.
import type { BlockingLock, Waiting } from "../../common.ts";
import { checkTimeout, Deadline } from "../../durable/wait/deadline.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { checkMount } from "../../durable/mount/mount-check.ts";
import { isHoldfastError } from "../../errors.ts";
import { diskError, errnoOf } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import { blockingLock, notHeld, timedOut } from "./errors.ts";
import { ClaimHold, type SemaphoreHold } from "./hold.ts";
import { infoOf, type LockFileInfo } from "./lock-file.ts";
import { SemaphoreProtocol, type Obstacle, type WonLock } from "./protocol.ts";
import { checkLockPath, explainPath, resolveLockPath } from "./path.ts";
import { checkTag, settingsOf, type SemaphoreOptions, type SemaphoreSettings } from "./options.ts";
import { isOwnedBy, ownerOf, type SemaphoreClaim } from "./owner.ts";
import { RetryPause } from "./retry-pause.ts";
import type { OwnHold, LocalLock, InProcessLocks } from "./in-process.ts";
import type { TakenLock } from "./observe.ts";
import { sweepTemps } from "./staleness.ts";
import { workUnder } from "../path/path-hold.ts";
import { tracedSemaphoreMethods } from "../traced-methods.ts";

/** The state of a semaphore. */
export interface SemaphoreStatus {
  /** True if there is a lock, stale or not. */
  readonly locked: boolean;
  /** The record of the lock file. Absent if it has none that can be read. */
  readonly info?: Readonly<LockFileInfo>;
  /**
   * True if the lock may be taken over: its holder is dead, or its holder is unknown and the lock
   * is older than `staleMs`.
   */
  readonly stale: boolean;
  /** True if this process holds it. Its token proves that, not its pid. */
  readonly mine: boolean;
}

/** The process that a lock file names. Properties that the file does not record are empty. */
export interface SemaphoreHolder extends BlockingLock {
  /** Why it counts as held or stale, for people: "its holder, process 7, is alive". */
  readonly why: string;
}

export interface SemaphoreWorld {
  /** Opens the ports for a directory. Called at first use, and again if a symbolic link leads elsewhere. */
  readonly openPorts: (directory: string) => Promise<Ports>;
  /** One for the whole process. */
  readonly inProcess: InProcessLocks;
  /** A faulty protocol, for tests. */
  readonly Protocol?: typeof SemaphoreProtocol;
  /** Pause between two checks that the lock of a hold still exists. Default 5,000. */
  readonly watchMs?: number;
}

interface SemaphoreContext {
  readonly ports: Ports;
  readonly protocol: SemaphoreProtocol;
}

/** Options of `Semaphore.acquire`. */
export interface SemaphoreAcquireOptions extends Waiting {
  /** A text for people, recorded in the lock file. Default: none. */
  tag?: string | undefined;
}

export class PortsSemaphore {
  static {
    traceMethods(this, tracedSemaphoreMethods);
  }

  /** The absolute path of the lock file. */
  readonly path: string;
  readonly #world: SemaphoreWorld;
  readonly #settings: SemaphoreSettings;
  #site: Promise<SemaphoreContext> | undefined;

  constructor(world: SemaphoreWorld, path: string, options: SemaphoreOptions = {}) {
    checkLockPath(path);
    this.path = path;
    this.#world = world;
    this.#settings = settingsOf(options);
  }

  /**
   * Acquires the lock if it is free or stale. Returns undefined if another caller holds it. Throws
   * INVALID_PATH.
   */
  async tryAcquire({ tag }: { tag?: string | undefined } = {}): Promise<SemaphoreHold | undefined> {
    checkTag(tag);
    const outcome = await this.#explained((site) => this.#tryOnce(site, tag));
    return outcome instanceof ClaimHold ? outcome : undefined;
  }

  /**
   * Acquires the lock, and waits for at most `timeoutMs` (default `Infinity`). Callers of one
   * process queue first come, first served. Throws LOCK_TIMEOUT, with the holder if it is known,
   * and INVALID_PATH.
   */
  async acquire({ timeoutMs = Infinity, signal, tag }: SemaphoreAcquireOptions = {}): Promise<SemaphoreHold> {
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
   * Runs `work` under the lock and always releases it. Passes errors of `work` on unchanged. Throws
   * as `acquire` does, and LOCK_LOST if the lock was lost before `work` ended. Long work should
   * watch `hold.signal`.
   */
  async withLock<T>(work: (hold: SemaphoreHold) => Promise<T>, options: SemaphoreAcquireOptions = {}): Promise<T> {
    return await workUnder(await this.acquire(options), work);
  }

  /** Returns the state of the lock. Throws INVALID_PATH if the file is not a lock. */
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
   * Returns the current holder. Returns undefined if the lock is free, or if its file has no
   * readable record. Throws INVALID_PATH if the file is not a lock.
   */
  async findHolder(): Promise<SemaphoreHolder | undefined> {
    return await this.#explained(async ({ ports, protocol }) => {
      const observation = await protocol.observe();
      if (observation.kind === "free" || observation.record === undefined) return undefined;
      const { why } = await protocol.judge(observation);
      return { ...blockingLock(ports, this.path, observation.record), why };
    });
  }

  /**
   * Ends the hold of this process, whichever semaphore on this path acquired it. `force` (default
   * false) removes the lock of another process as well. Throws NOT_HELD without `force`.
   */
  async release({ force = false }: { force?: boolean | undefined } = {}): Promise<void> {
    await this.#explained(async ({ ports, protocol }) => {
      const { ownerPid } = this.#settings;
      const own = this.#findOwnHold(protocol);
      if (own !== undefined && (await own.end())) return;
      // Check before the guard is opened: no guard file may appear beside a file that is not a lock.
      protocol.mustBeLock(await protocol.observe());
      if (ownerPid !== undefined && (await protocol.giveUpFor(ownerOf(ports.host, ownerPid)))) return;
      const who = ownerPid === undefined ? "this process" : `process ${ownerPid}`;
      if (!force) throw notHeld(this.path, who, await protocol.observe());
      await protocol.removeAnyway();
    });
  }

  /**
   * Removes a stale lock and orphaned temp files; returns true if it removed any. Throws
   * INVALID_PATH if the file is not a lock, and UNSUPPORTED_DISK if a stale lock cannot be removed
   * safely.
   */
  async clean(): Promise<boolean> {
    return await this.#explained(async ({ ports, protocol }) => {
      const removed = await protocol.removeStale();
      return (await sweepTemps(ports, protocol.path)) || removed;
    });
  }

  /**
   * Describes what is unsafe about the directory of the lock, in a sentence for people. Returns
   * undefined if it is safe.
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

  /** Returns undefined if another caller of this process has its turn. */
  async #tryOnce(site: SemaphoreContext, tag: string | undefined): Promise<ClaimHold | Obstacle | undefined> {
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

  async #wait(site: SemaphoreContext, { timeoutMs, signal, tag }: SemaphoreAcquireOptions): Promise<ClaimHold> {
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
        // Giving up waits for the stopped process to continue. Until then the turn stays taken.
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
    { ports, protocol }: SemaphoreContext,
    tag: string | undefined,
    until: AbortSignal,
    onObstacle: (obstacle: Obstacle) => void,
  ): Promise<WonLock> {
    let patience: RetryPause | undefined;
    try {
      for (;;) {
        patience?.begin();
        const attempt = await protocol.attempt(tag);
        if ("claim" in attempt) return attempt;
        onObstacle(attempt.obstacle);
        until.throwIfAborted();
        if (patience === undefined) {
          // Start the watch, then observe again, then pause: otherwise a release between the first observation and
          // the watch would be missed.
          patience = new RetryPause(ports, parentOf(protocol.path), this.#settings.retryMs);
          continue;
        }
        await patience.pause(until);
      }
    } finally {
      patience?.end();
    }
  }

  /** If an attempt fails before there is a hold, the turn is given up. A hold gives it up when it ends. */
  async #orLeave<T>({ protocol }: SemaphoreContext, local: LocalLock, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      this.#world.inProcess.leave(protocol.path, local);
      throw error;
    }
  }

  async #holdOf(
    site: SemaphoreContext,
    local: LocalLock,
    { claim, doubt }: WonLock,
    signal?: AbortSignal,
  ): Promise<ClaimHold> {
    const hold = this.#newHold(site, local, claim);
    if (doubt === undefined && !signal?.aborted) return hold;
    // The caller has aborted, or it is not certain that it holds the lock. If giving up fails now, the hold retries:
    // as long as this process lives, no other may take the lock over.
    await hold.end().catch(() => undefined);
    signal?.throwIfAborted();
    throw doubt;
  }

  /** Gives up in the background. The turn stays taken until that is done. */
  #giveUp(site: SemaphoreContext, local: LocalLock, claim: SemaphoreClaim): void {
    // The hold itself retries after a failure.
    this.#newHold(site, local, claim)
      .end()
      .catch(() => undefined);
  }

  #newHold({ ports, protocol }: SemaphoreContext, local: LocalLock, claim: SemaphoreClaim): ClaimHold {
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

  #isMine({ ports, protocol }: SemaphoreContext, { record }: TakenLock): boolean {
    if (record?.token === undefined) return false;
    const { ownerPid } = this.#settings;
    const own = this.#findOwnHold(protocol);
    return own?.token === record.token || (ownerPid !== undefined && isOwnedBy(record, ownerOf(ports.host, ownerPid)));
  }

  /** Returns the current obstacle, for an error message. */
  async #look({ protocol }: SemaphoreContext): Promise<Obstacle> {
    const observation = await protocol.observe();
    if (observation.kind === "free") return { observation, why: "it was just released" };
    return { observation, why: (await protocol.judge(observation)).why };
  }

  /** Runs an operation in the directory of the lock, and explains disk errors. */
  async #explained<T>(operation: (site: SemaphoreContext) => Promise<T>): Promise<T> {
    try {
      this.#site ??= this.#open();
      return await operation(await this.#site);
    } catch (error) {
      throw explain(error, this.path);
    }
  }

  async #open(): Promise<SemaphoreContext> {
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
      // Resolve the path again at the next call: a missing directory may exist then.
      this.#site = undefined;
      throw error;
    }
  }
}

/** True if the lock was won but could not be confirmed, because a process that seems to be stopped has the guard. */
function isGuardBusy({ doubt }: WonLock): boolean {
  return isHoldfastError(doubt, "LOCK_TIMEOUT");
}

function explain(error: unknown, path: string): unknown {
  const explained = explainPath(error, path);
  if (explained !== error || isHoldfastError(error, "INVALID_PATH")) return explained;
  const errno = errnoOf(error);
  return errno === undefined ? error : diskError(errno, "lock", path, error);
}
