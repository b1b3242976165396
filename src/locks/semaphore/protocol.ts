// The semaphore protocol: which steps may change the name of a lock, in which order, and which of
// them need the guard.
//
// 1. A free name is won by one atomic call, without the guard. If there is a guard, the lock counts
//    only once its maker has acquired the guard and found the lock still there: until then, a taker
//    may have moved another lock away by mistake, and has to put it back.
// 2. A lock is taken away only under the guard, after a second observation: the same bytes, and
//    still stale. It is moved to a temporary name, observed there, and put back if it is another
//    lock: programs without a guard may come between.
// 3. Its own holder may unlink it without the guard while it is young: no process takes over a
//    young lock whose holder lives, so none can come between observation and unlink.
// 4. Where the guard does not exclude every process, nothing is ever taken over.
//
// Rule 2 binds the holder of an old lock too: it observes its own lock, a taker takes over under
// the guard, and then the holder would unlink the lock of the taker.
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { diskError, hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { elapsedMs } from "../../ports/heart.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { createLockFile, makeLockDirectory, removeLock, moveAway, withStaged, type FileOptions } from "./file-ops.ts";
import { Guard, type GuardResult } from "./guard.ts";
import { notALock } from "./path.ts";
import { isOwnedBy, isObservationOf, newClaim, type ClaimOptions, type Owner, type SemaphoreClaim } from "./owner.ts";
import { isSame, observe, type Observation, type TakenLock } from "./observe.ts";
import { Staleness, type StalenessVerdict } from "./staleness.ts";

export interface SemaphoreProtocolOptions extends FileOptions, ClaimOptions {
  readonly staleMs: number | null;
}

/** Why an attempt did not acquire the lock. */
export interface Obstacle {
  readonly observation: Observation;
  readonly why: string;
}

/** `doubt`: the reply was lost. The lock may be ours, and the caller must give it up. */
export interface WonLock {
  readonly claim: SemaphoreClaim;
  readonly doubt?: unknown;
}

export type Attempt = WonLock | { readonly obstacle: Obstacle };

/** Rounds of one attempt: in each round another process may win a name that looked free. */
const roundsMax = 3;
/** Even with `staleMs: null`, other programs apply the protocol's own limit. */
const defaultStaleMs = 3_600_000;

export class SemaphoreProtocol {
  readonly path: string;
  protected readonly ports: Ports;
  readonly #options: SemaphoreProtocolOptions;
  readonly #staleness: Staleness;
  readonly #guard: Guard;
  #canLink = true;

  constructor(ports: Ports, path: string, options: SemaphoreProtocolOptions) {
    this.ports = ports;
    this.path = path;
    this.#options = options;
    this.#staleness = new Staleness(ports, path, options);
    this.#guard = new Guard(ports, path);
  }

  async observe(): Promise<Observation> {
    const observation = await observe(this.ports.disk, this.path);
    this.#staleness.saw(observation);
    return observation;
  }

  judge(observation: TakenLock): Promise<StalenessVerdict> {
    return this.#staleness.judge(observation);
  }

  /** Makes one attempt: takes the name if it is free or stale. Never waits. */
  async attempt(tag: string | undefined): Promise<Attempt> {
    let observation: Observation = { kind: "free" };
    for (let round = 0; round < roundsMax; round++) {
      observation = await this.observe();
      if (observation.kind === "taken") {
        const { isStale, why } = await this.judge(observation);
        if (!isStale) return { obstacle: { observation, why } };
        const outcome = await this.#tryTakeOver(observation, tag);
        if (typeof outcome === "string")
          return { obstacle: { observation, why: `it is stale (${why}), but ${outcome}` } };
        if (outcome !== undefined) return outcome;
        continue;
      }
      const attempt = await this.#tryWin(newClaim(this.ports, this.#options, tag));
      if (attempt !== undefined) return attempt;
    }
    return { obstacle: { observation, why: "others were faster" } };
  }

  /** True if the lock is still ours. Rejects if that is unknown. */
  async isStanding(claim: SemaphoreClaim): Promise<boolean> {
    const observation = await this.observe();
    this.#mustBeVisible(observation);
    return isObservationOf(claim, observation);
  }

  /** Returns false if the lock was lost before. */
  async giveUp(claim: SemaphoreClaim): Promise<boolean> {
    if (!this.mustGuard(claim)) return await this.#removeOwn(claim, false);
    return await this.#guarded((isGuarded) => this.#removeOwn(claim, isGuarded));
  }

  /** Releases the lock of a process for which this one acts. Returns false if that process has none. */
  async giveUpFor(owner: Owner): Promise<boolean> {
    // Use the guard whatever its age: the owner may die meanwhile, and a dead owner's lock is taken over at once.
    return await this.#guarded(async (isGuarded) => {
      const observation = await this.observe();
      if (observation.kind === "free" || observation.record === undefined || !isOwnedBy(observation.record, owner))
        return false;
      return await this.#remove(observation, isGuarded);
    });
  }

  /** Returns true if a stale lock existed and is gone. Throws UNSUPPORTED_DISK if it cannot be removed safely. */
  async removeStale(): Promise<boolean> {
    const observation = await this.observe();
    if (observation.kind === "free" || !(await this.judge(observation)).isStale) return false;
    return await this.#guardedOrRefused(
      async () => (await this.isStillStale(observation)) && this.#remove(observation, true),
    );
  }

  /**
   * Removes any lock, because the caller insists. Returns true if there was one. Throws INVALID_PATH for a file that
   * is not a lock.
   */
  async removeAnyway(): Promise<boolean> {
    return await this.#guarded(async (isGuarded) => {
      for (let round = 0; round < roundsMax; round++) {
        const observation = await this.observe();
        this.mustBeLock(observation);
        if (observation.kind === "free") return false;
        if (await this.#remove(observation, isGuarded)) return true;
      }
      return false;
    });
  }

  /** Throws INVALID_PATH if the contents are neither a record nor, as far as is known, the beginning of one. */
  mustBeLock(observation: Observation): void {
    if (observation.kind === "taken" && (observation.contents === "data" || observation.contents === "unfinished"))
      throw notALock(this.path, observation.form);
  }

  /**
   * Returns false while the lock is so young that no process can take it over before it is removed: up to half of its
   * time. The other half is a margin for a pause of this process.
   */
  protected mustGuard({ since, isForAnother, isUnsettled }: SemaphoreClaim): boolean {
    // For the same reason as in `giveUpFor`.
    if (isForAnother || isUnsettled) return true;
    const { clock } = this.ports;
    const ageMs = elapsedMs(since, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
    return ageMs >= Math.min(this.#options.staleMs ?? defaultStaleMs, defaultStaleMs) / 2;
  }

  #guarded<T>(action: (isGuarded: boolean) => Promise<T>): Promise<T> {
    return this.#guard.runIfAny(action);
  }

  /** Returns undefined if another process has the guard. */
  protected tryGuarded<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    return this.#guard.tryRun(action);
  }

  /**
   * Replaces the observed lock by the one that `make` creates in one call, if it still exists and is stale. Otherwise
   * returns false. Call it under the guard.
   */
  protected async takeOver(observation: TakenLock, make: () => Promise<boolean>): Promise<boolean> {
    if (!(await this.isStillStale(observation))) return false;
    return (await moveAway(this.ports, this.path, observation, make)) ?? false;
  }

  /** Compare last: a lock that may have changed is moved right after this. */
  protected async isStillStale(observation: TakenLock): Promise<boolean> {
    return (await this.judge(observation)).isStale && isSame(observation, await this.observe());
  }

  /**
   * True if a lock that was won on a free name exists when this process has the guard: then no taker can have moved
   * it, nor hold another lock that must be put back under this name.
   */
  protected isSettled(claim: SemaphoreClaim, guard: OsLockFile | undefined): Promise<boolean> {
    return this.#guard.confirm(guard, () => this.isStanding(claim));
  }

  /**
   * Returns undefined if something changed, so that the caller observes again, and a string that names the obstacle.
   */
  async #tryTakeOver(observation: TakenLock, tag: string | undefined): Promise<Attempt | string | undefined> {
    if (!this.#guard.isTrusted) return "on this file system nothing can be taken over safely";
    const claim = newClaim(this.ports, this.#options, tag);
    let isBusy = false;
    try {
      // Stage and sync before acquiring the guard, so that nothing slow happens after the last observation.
      const attempt = await this.#claimOrDoubt(claim, async (make) => {
        const outcome = await this.tryGuarded(() => this.takeOver(observation, make));
        isBusy = outcome === undefined;
        return outcome?.result ?? false;
      });
      return isBusy ? "another process is at it" : attempt;
    } catch (error) {
      if (isHoldfastError(error, "UNSUPPORTED_DISK", "NO_PERMISSION"))
        return `it cannot be taken over: ${error.message}`;
      throw error;
    }
  }

  /** Returns undefined if another process was faster, so that the caller observes again. */
  async #tryWin(claim: SemaphoreClaim): Promise<Attempt | undefined> {
    // These are created in two steps. In between they look like remains of a crash, which other processes remove
    // after a while.
    if (claim.form === "directory" || !this.#canLink)
      return await this.#claimOrDoubt(claim, async (make) => (await this.#guard.tryRunIfAny(make))?.result ?? false);
    const guard = await this.#guard.open({ isNeeded: claim.isForAnother });
    try {
      const won = await this.#claimOrDoubt(claim, (make) => make());
      return won === undefined || won.doubt !== undefined ? won : await this.#settle(won, guard);
    } finally {
      await guard?.close();
    }
  }

  async #settle(won: WonLock, guard: OsLockFile | undefined): Promise<WonLock | undefined> {
    try {
      return (await this.isSettled(won.claim, guard)) ? won : undefined;
    } catch (error) {
      return { claim: { ...won.claim, isUnsettled: true }, doubt: error };
    }
  }

  /** `win` calls `make`, which creates the lock if the name is free. */
  async #claimOrDoubt(
    claim: SemaphoreClaim,
    win: (make: () => Promise<boolean>) => Promise<boolean>,
  ): Promise<WonLock | undefined> {
    try {
      return (await this.#prepared(claim, win)) ? { claim } : undefined;
    } catch (error) {
      if (await this.#isNothingDone(error)) return undefined;
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN") && !isOutcomeUnknown(error)) throw error;
      return { claim: { ...claim, isUnsettled: true }, doubt: error };
    }
  }

  async #prepared(
    { form, bytes }: SemaphoreClaim,
    win: (make: () => Promise<boolean>) => Promise<boolean>,
  ): Promise<boolean> {
    const { ports, path } = this;
    const options = this.#options;
    if (form === "directory") return await win(() => makeLockDirectory(ports, path, bytes, options));
    if (!this.#canLink) return await win(() => createLockFile(ports.disk, path, bytes, options));
    return await withStaged(ports, path, bytes, options, win);
  }

  /** True if the attempt had no effect and another round may succeed. */
  async #isNothingDone(error: unknown): Promise<boolean> {
    if (isHoldfastError(error, "UNSUPPORTED_DISK") && error.missing.includes("hard links")) {
      this.#canLink = false;
      return true;
    }
    // Another process had the lock and released it before its record was read.
    if (hasErrno(error, "ESTALE")) return true;
    // A sweep removed our staged file before it was linked. The next round stages another, unless the directory is
    // gone.
    return hasErrno(error, "ENOENT") && (await this.ports.disk.canOpen(parentOf(this.path)));
  }

  async #removeOwn(claim: SemaphoreClaim, isGuarded: boolean): Promise<boolean> {
    const observation = await this.observe();
    this.#mustBeVisible(observation);
    return (
      observation.kind === "taken" &&
      isObservationOf(claim, observation) &&
      (await this.#remove(observation, isGuarded))
    );
  }

  /** Returns false if the lock had changed by then. */
  async #remove(observation: TakenLock, isGuarded: boolean): Promise<boolean> {
    if (isGuarded) return (await moveAway(this.ports, this.path, observation, async () => true)) ?? false;
    await removeLock(this.ports, this.path, observation);
    return true;
  }

  /**
   * Throws if this user may no longer read the lock, or its file handle is stale. That does not mean that it is lost.
   */
  #mustBeVisible(observation: Observation): void {
    if (observation.kind === "free") return;
    if (observation.isHidden) throw diskError("EACCES", "read", this.path);
    if (observation.changedWhileReading) throw diskError("ESTALE", "read", this.path);
  }

  async #guardedOrRefused<T>(action: () => Promise<T>): Promise<T> {
    if (!this.#guard.isTrusted) throw this.#unsafe(`${this.ports.disk.volume.type} is not known to be a local disk`);
    try {
      return await this.#guard.run(action);
    } catch (error) {
      throw isHoldfastError(error, "UNSUPPORTED_DISK") ? this.#unsafe(error.message, error) : error;
    }
  }

  #unsafe(why: string, cause?: unknown): Error {
    const { path } = this;
    const message = `${path} is stale, but cannot be removed safely, because no OS lock would keep other processes out meanwhile: ${why}. If you know that no process holds it, release it with force.`;
    return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["OS lock"] }, cause);
  }
}
