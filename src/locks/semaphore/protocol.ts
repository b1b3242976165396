// The protocol: what may happen to the name of a lock, in which order, and what of it only under the guard.
//
// 1. A free name is won by one atomic call, without the guard. If there is a guard, what was won counts only when it is
//    found to stand under the guard: until then a taker may have another lock in its hands, which it has to put back.
// 2. What is there is taken away only under the guard, after looking again: the same bytes, and still stale. It is moved to a
//    name of our own, looked at there, and put back if it is something else: programs without a guard come between.
// 3. Except by its own holder while it is young: nobody takes a young lock whose holder lives, so nobody can come between
//    look and unlink.
// 4. Where the guard does not exclude everybody, nothing is ever taken over.
//
// Why (2) binds the holder of an old lock too: it looks ("mine"), another one takes over under the guard, and what the holder
// unlinks then is the lock of the other.
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { diskError, hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { elapsedMs } from "../../ports/heart.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { createLockFile, makeLockDirectory, removeLock, takeAway, withStaged, type FileOptions } from "./file-ops.ts";
import { Guard, type Guarded } from "./guard.ts";
import { notALock } from "./path.ts";
import { isOwnedBy, isObservationOf, newClaim, type ClaimOptions, type Owner, type SemaphoreClaim } from "./owner.ts";
import { isSame, observe, type Observation, type Taken } from "./observe.ts";
import { Staleness, type Verdict } from "./staleness.ts";

export interface SemaphoreProtocolOptions extends FileOptions, ClaimOptions {
  readonly staleMs: number | null;
}

/** Why a claim was not made. */
export interface Obstacle {
  readonly observation: Observation;
  readonly why: string;
}

/** With a `doubt` the answer was lost: the claim may stand, and whoever made it has to give it up. */
export interface Won {
  readonly claim: SemaphoreClaim;
  readonly doubt?: unknown;
}

export type Attempt = Won | { readonly obstacle: Obstacle };

/** How often a name that looked free may be lost to somebody faster, in one attempt. */
const roundsMax = 3;
/** A lock whose age is limited by nobody here may be judged by others, who have the protocol's own limit. */
const defaultStaleMs = 3_600_000;

export class SemaphoreProtocol {
  readonly path: string;
  protected readonly ports: Ports;
  protected readonly options: SemaphoreProtocolOptions;
  protected readonly staleness: Staleness;
  readonly #guard: Guard;
  #canLink = true;

  constructor(ports: Ports, path: string, options: SemaphoreProtocolOptions) {
    this.ports = ports;
    this.path = path;
    this.options = options;
    this.staleness = new Staleness(ports, path, options);
    this.#guard = new Guard(ports, path);
  }

  async observe(): Promise<Observation> {
    const observation = await observe(this.ports.disk, this.path);
    this.staleness.saw(observation);
    return observation;
  }

  judge(observation: Taken): Promise<Verdict> {
    return this.staleness.judge(observation);
  }

  /** One attempt: takes the name if it is free or stale. Never waits for anybody. */
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
      const attempt = await this.#tryWin(newClaim(this.ports, this.options, tag));
      if (attempt !== undefined) return attempt;
    }
    return { obstacle: { observation, why: "others were faster" } };
  }

  /** Whether it is still ours, as far as can be told. Rejects when it cannot. */
  async isStanding(claim: SemaphoreClaim): Promise<boolean> {
    const observation = await this.observe();
    this.#mustBeVisible(observation);
    return isObservationOf(claim, observation);
  }

  /** False when it was lost before. */
  async giveUp(claim: SemaphoreClaim): Promise<boolean> {
    if (!this.mustGuard(claim)) return await this.#removeOwn(claim, false);
    return await this.guarded((isGuarded) => this.#removeOwn(claim, isGuarded));
  }

  /** Ends the lock of another process that we act for; false when it has none. */
  async giveUpFor(owner: Owner): Promise<boolean> {
    // Under the guard whatever its age: the owner may die while we look, and the lock of the dead is taken at once.
    return await this.guarded(async (isGuarded) => {
      const observation = await this.observe();
      if (observation.kind === "free" || observation.record === undefined || !isOwnedBy(observation.record, owner))
        return false;
      return await this.#remove(observation, isGuarded);
    });
  }

  /** True when a stale lock was there and is gone. UNSUPPORTED_DISK where that cannot be done safely. */
  async removeStale(): Promise<boolean> {
    const observation = await this.observe();
    if (observation.kind === "free" || !(await this.judge(observation)).isStale) return false;
    return await this.#guardedOrRefused(
      async () => (await this.isStillStale(observation)) && this.#remove(observation, true),
    );
  }

  /** Whatever lock is there, because somebody says so. True when there was one. INVALID_PATH for what is none: nobody can mean that. */
  async removeAnyway(): Promise<boolean> {
    return await this.guarded(async (isGuarded) => {
      for (let round = 0; round < roundsMax; round++) {
        const observation = await this.observe();
        this.mustBeLock(observation);
        if (observation.kind === "free") return false;
        if (await this.#remove(observation, isGuarded)) return true;
      }
      return false;
    });
  }

  /** INVALID_PATH when what is there has contents that are no record and, as far as they go, not the beginning of one. */
  mustBeLock(observation: Observation): void {
    if (observation.kind === "taken" && (observation.contents === "data" || observation.contents === "unfinished"))
      throw notALock(this.path, observation.form);
  }

  /** False while it is so young that nobody can take it before it is removed: half of the time, and the other half for the pause of a busy machine. */
  protected mustGuard({ since, isForAnother, isUnsettled }: SemaphoreClaim): boolean {
    // As for `giveUpFor`.
    if (isForAnother || isUnsettled) return true;
    const { clock } = this.ports;
    const ageMs = elapsedMs(since, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
    return ageMs >= Math.min(this.options.staleMs ?? defaultStaleMs, defaultStaleMs) / 2;
  }

  protected guarded<T>(action: (isGuarded: boolean) => Promise<T>): Promise<T> {
    return this.#guard.runIfAny(action);
  }

  /** Undefined when somebody else is at it. */
  protected tryGuarded<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    return this.#guard.tryRun(action);
  }

  /** Under the guard, with a lock that `make` makes in one call: takes the place of `observation` if that is still there and stale; else false. */
  protected async takeOver(observation: Taken, make: () => Promise<boolean>): Promise<boolean> {
    if (!(await this.isStillStale(observation))) return false;
    return (await takeAway(this.ports, this.path, observation, make)) ?? false;
  }

  /** The look last: what may be another's by now is moved right after it. */
  protected async isStillStale(observation: Taken): Promise<boolean> {
    return (await this.judge(observation)).isStale && isSame(observation, await this.observe());
  }

  /** Whether what was won on a free name stands, now that no taker can have moved it, nor another lock in whose place it stands. */
  protected isSettled(claim: SemaphoreClaim, guard: OsLockFile | undefined): Promise<boolean> {
    return this.#guard.confirm(guard, () => this.isStanding(claim));
  }

  /** Undefined: something has changed, look again. Text: what stands in the way. */
  async #tryTakeOver(observation: Taken, tag: string | undefined): Promise<Attempt | string | undefined> {
    if (!this.#guard.isTrusted) return "on this file system nothing can be taken over safely";
    const claim = newClaim(this.ports, this.options, tag);
    let isBusy = false;
    try {
      // Written and synced before the guard is asked for: nothing that takes long comes between the last look and the end.
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

  /** Undefined: another process was faster, look again. */
  async #tryWin(claim: SemaphoreClaim): Promise<Attempt | undefined> {
    // Made in two steps: between them it would look like the leavings of a crash, which others take away after a while, however slow we are.
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

  async #settle(won: Won, guard: OsLockFile | undefined): Promise<Won | undefined> {
    try {
      return (await this.isSettled(won.claim, guard)) ? won : undefined;
    } catch (error) {
      return { claim: { ...won.claim, isUnsettled: true }, doubt: error };
    }
  }

  /** `win` calls `make`, which makes the lock if the name is free. */
  async #claimOrDoubt(
    claim: SemaphoreClaim,
    win: (make: () => Promise<boolean>) => Promise<boolean>,
  ): Promise<Won | undefined> {
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
    const { ports, path, options } = this;
    if (form === "directory") return await win(() => makeLockDirectory(ports, path, bytes, options));
    if (!this.#canLink) return await win(() => createLockFile(ports.disk, path, bytes, options));
    return await withStaged(ports, path, bytes, options, win);
  }

  /** What stopped us is no failure: look again. */
  async #isNothingDone(error: unknown): Promise<boolean> {
    if (isHoldfastError(error, "UNSUPPORTED_DISK") && error.missing.includes("hard links")) {
      this.#canLink = false;
      return true;
    }
    // Somebody had it, and was gone before it could be seen who.
    if (hasErrno(error, "ESTALE")) return true;
    // What we had written was swept before it was linked: nothing has happened, and the next round writes it anew. Unless the directory is gone.
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

  /** False when something else was there by then. */
  async #remove(observation: Taken, isGuarded: boolean): Promise<boolean> {
    if (isGuarded) return (await takeAway(this.ports, this.path, observation, async () => true)) ?? false;
    await removeLock(this.ports, this.path, observation);
    return true;
  }

  /** What this user may no longer read, or what the server no longer knows by the handle that it gave, is not lost for that. */
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
    const message = `${path} is stale, but cannot be removed safely, because no OS lock would keep everybody else from it meanwhile: ${why}. If you know that nobody holds it, release it with force.`;
    return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["OS lock"] }, cause);
  }
}
