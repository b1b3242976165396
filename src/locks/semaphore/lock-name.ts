// The protocol: what may happen to the name of a lock, in which order, and what of it only under the guard.
//
// 1. A free name is won by one atomic call, without the guard.
// 2. What is there is removed or replaced only under the guard, after looking again: the same bytes, and still stale.
// 3. Except by its own holder while it is young: nobody takes a young lock whose holder lives, so nobody can come between look and unlink.
// 4. Where the guard does not exclude everybody, nothing is ever taken over.
//
// Why (2) binds the holder of an old lock too: it looks ("mine"), another one under the guard looks ("stale"), the holder unlinks, a third creates on the
// free name, and the other one's rename replaces the lock of the third.
import { parentOf } from "../../durable/directory.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { diskError, hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { elapsedMs, type BeatTimes } from "../../ports/heart.ts";
import type { Ports } from "../../ports/ports.ts";
import {
  createLockFile,
  linkLockFile,
  makeLockDirectory,
  removeLock,
  replaceLockFile,
  type FileOptions,
} from "./form.ts";
import { Guard, type Guarded } from "./guard.ts";
import { formatLockRecord, parseLockRecord, type LockRecord } from "./lock-file.ts";
import { notALock } from "./lock-path.ts";
import { isOwnedBy, newRecord, type Owner } from "./owner.ts";
import { isSame, look, takenBy, type LockForm, type Sight, type Taken } from "./sight.ts";
import { Staleness, type Verdict } from "./staleness.ts";

export interface LockNameOptions extends FileOptions {
  readonly form: LockForm;
  readonly staleMs: number | null;
  /** The process that a lock is taken for, if it is not this one. */
  readonly ownerPid: number | undefined;
}

/** One acquisition: a record of ours that stands under the name, until it is given up or lost. */
export interface Claim {
  readonly record: LockRecord;
  readonly bytes: Uint8Array;
  readonly form: LockForm;
  readonly since: BeatTimes;
  /** The owner is another process, which may die while we act for it. */
  readonly isForAnother: boolean;
}

/** Why a claim was not made. */
export interface Obstacle {
  readonly sight: Sight;
  readonly why: string;
}

/** With a `doubt` the answer was lost: the claim may stand, and whoever made it has to give it up. */
export type Attempt = { readonly claim: Claim; readonly doubt?: unknown } | { readonly obstacle: Obstacle };

/** How often a name that looked free may be lost to somebody faster, in one attempt. */
const roundsMax = 3;
/** A lock whose age is limited by nobody here may be judged by others, who have the protocol's own limit. */
const defaultStaleMs = 3_600_000;

export class LockName {
  readonly path: string;
  protected readonly ports: Ports;
  protected readonly options: LockNameOptions;
  protected readonly staleness: Staleness;
  readonly #guard: Guard;
  #canLink = true;

  constructor(ports: Ports, path: string, options: LockNameOptions) {
    this.ports = ports;
    this.path = path;
    this.options = options;
    this.staleness = new Staleness(ports, path, options);
    this.#guard = new Guard(ports, path);
  }

  async look(): Promise<Sight> {
    const sight = await look(this.ports.disk, this.path);
    this.staleness.saw(sight);
    return sight;
  }

  judge(sight: Taken): Promise<Verdict> {
    return this.staleness.judge(sight);
  }

  /** One attempt: takes the name if it is free or stale. Never waits for anybody. */
  async attempt(tag: string | undefined): Promise<Attempt> {
    let sight: Sight = { kind: "free" };
    for (let round = 0; round < roundsMax; round++) {
      sight = await this.look();
      if (sight.kind === "taken") {
        const { isStale, why } = await this.judge(sight);
        if (!isStale) return { obstacle: { sight, why } };
        const outcome = await this.#tryTakeOver(sight, tag);
        if (typeof outcome === "string") return { obstacle: { sight, why: `it is stale (${why}), but ${outcome}` } };
        if (outcome !== undefined) return outcome;
        continue;
      }
      const claim = this.#newClaim(tag);
      const attempt = await this.#claimOrDoubt(claim, () => this.#create(claim));
      if (attempt !== undefined) return attempt;
    }
    return { obstacle: { sight, why: "others were faster" } };
  }

  /** Whether it is still ours, as far as can be told. Rejects when it cannot. */
  async isStanding(claim: Claim): Promise<boolean> {
    const sight = await this.look();
    this.#mustBeVisible(sight);
    return isSightOf(claim, sight);
  }

  /** False when it was lost before. */
  async giveUp(claim: Claim): Promise<boolean> {
    if (!this.mustGuard(claim)) return await this.#removeOwn(claim);
    return await this.guarded(() => this.#removeOwn(claim));
  }

  /** Ends the lock of another process that we act for; false when it has none. */
  async giveUpFor(owner: Owner): Promise<boolean> {
    // Under the guard whatever its age: the owner may die while we look, and the lock of the dead is taken at once.
    return await this.guarded(async () => {
      const sight = await this.look();
      if (sight.kind === "free" || sight.record === undefined || !isOwnedBy(sight.record, owner)) return false;
      await removeLock(this.ports, this.path, sight);
      return true;
    });
  }

  /** True when a stale lock was there and is gone. UNSUPPORTED_DISK where that cannot be done safely. */
  async removeStale(): Promise<boolean> {
    const sight = await this.look();
    if (sight.kind === "free" || !(await this.judge(sight)).isStale) return false;
    return await this.#guardedOrRefused(async () => {
      if (!(await this.isStillStale(sight))) return false;
      await removeLock(this.ports, this.path, sight);
      return true;
    });
  }

  /** Whatever lock is there, because somebody says so. True when there was one. INVALID_PATH for what is none: nobody can mean that. */
  async removeAnyway(): Promise<boolean> {
    return await this.guarded(async () => {
      const sight = await this.look();
      this.mustBeLock(sight);
      if (sight.kind === "taken") await removeLock(this.ports, this.path, sight);
      return sight.kind === "taken";
    });
  }

  /** INVALID_PATH when what is there has contents that are no record and, as far as they go, not the beginning of one. */
  mustBeLock(sight: Sight): void {
    if (sight.kind === "taken" && (sight.contents === "data" || sight.contents === "unfinished"))
      throw notALock(this.path, sight.form);
  }

  /** False while it is so young that nobody can take it before it is removed: half of the time, and the other half for the pause of a busy machine. */
  protected mustGuard({ since, isForAnother }: Claim): boolean {
    // As for `giveUpFor`.
    if (isForAnother) return true;
    const { clock } = this.ports;
    const ageMs = elapsedMs(since, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() });
    return ageMs >= Math.min(this.options.staleMs ?? defaultStaleMs, defaultStaleMs) / 2;
  }

  protected guarded<T>(action: () => Promise<T>): Promise<T> {
    return this.#guard.runIfAny(action);
  }

  /** Undefined when somebody else is at it. */
  protected tryGuarded<T>(action: () => Promise<T>): Promise<Guarded<T> | undefined> {
    return this.#guard.tryRun(action);
  }

  /** Under the guard: takes the place of `sight` if that is still there and stale; else false. */
  protected async takeOver(sight: Taken, claim: Claim): Promise<boolean> {
    if (!(await this.isStillStale(sight))) return false;
    if (sight.form === "file" && claim.form === "file")
      return await replaceLockFile(this.ports, this.path, claim.bytes, this.options);
    // A directory cannot be replaced in one step. The name is free for a moment, and whoever is faster has it.
    await removeLock(this.ports, this.path, sight);
    return await this.#createHere(claim);
  }

  protected async isStillStale(sight: Taken): Promise<boolean> {
    const again = await this.look();
    return isSame(sight, again) && (await this.judge(sight)).isStale;
  }

  /** Undefined: something has changed, look again. Text: what stands in the way. */
  async #tryTakeOver(sight: Taken, tag: string | undefined): Promise<Attempt | string | undefined> {
    if (!this.#guard.isTrusted) return "on this file system nothing can be taken over safely";
    try {
      const outcome = await this.tryGuarded(async () => {
        const claim = this.#newClaim(tag);
        return await this.#claimOrDoubt(claim, () => this.takeOver(sight, claim));
      });
      return outcome === undefined ? "another process is at it" : outcome.result;
    } catch (error) {
      if (isHoldfastError(error, "UNSUPPORTED_DISK", "NO_PERMISSION"))
        return `it cannot be taken over: ${error.message}`;
      throw error;
    }
  }

  async #claimOrDoubt(claim: Claim, make: () => Promise<boolean>): Promise<Attempt | undefined> {
    try {
      return (await make()) ? { claim } : undefined;
    } catch (error) {
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN") && !isOutcomeUnknown(error)) throw error;
      return { claim, doubt: error };
    }
  }

  async #create(claim: Claim): Promise<boolean> {
    if (claim.form === "file" && this.#canLink) return await this.#createHere(claim);
    // Made in two steps: between them it would look like the leavings of a crash, which others take away after a while, however slow we are.
    return (await this.#guard.tryRunIfAny(() => this.#createHere(claim)))?.result ?? false;
  }

  async #createHere({ form, bytes }: Claim): Promise<boolean> {
    const { ports, path, options } = this;
    try {
      if (form === "directory") return await makeLockDirectory(ports, path, bytes, options);
      if (!this.#canLink) return await createLockFile(ports.disk, path, bytes, options);
      return await linkLockFile(ports, path, bytes, options);
    } catch (error) {
      if (form === "file" && this.#canLink && isHoldfastError(error, "UNSUPPORTED_DISK")) {
        this.#canLink = false;
        return false;
      }
      // Somebody had it, and was gone before it could be seen who.
      if (hasErrno(error, "ESTALE")) return false;
      // What we had written was swept before it was linked: nothing has happened, and the next round writes it anew. Unless the directory is gone.
      if (hasErrno(error, "ENOENT") && (await ports.disk.canOpen(parentOf(path)))) return false;
      throw error;
    }
  }

  async #removeOwn(claim: Claim): Promise<boolean> {
    const sight = await this.look();
    this.#mustBeVisible(sight);
    if (sight.kind === "free" || !isSightOf(claim, sight)) return false;
    await removeLock(this.ports, this.path, sight);
    return true;
  }

  #newClaim(tag: string | undefined): Claim {
    const { clock, host, random } = this.ports;
    const { form, ownerPid = host.pid } = this.options;
    if (ownerPid !== host.pid && host.processState(ownerPid, "") === "dead")
      throw new RangeError(`owner.pid ${ownerPid} is no running process: its lock would be stale at once.`);
    // Now, and not when the wait began: a lock must not be born old.
    const since = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    const token = randomName(random.bytes(16));
    const meant = newRecord(this.ports, { token, pid: ownerPid, wallMs: since.wallMs, tag });
    const bytes = Buffer.from(formatLockRecord(meant));
    // As everybody will read it: a tag may have lost something.
    const record = parseLockRecord(bytes.toString()) ?? meant;
    return { record, bytes, form, since, isForAnother: ownerPid !== host.pid };
  }

  /** What this user may no longer read, or what the server no longer knows by the handle that it gave, is not lost for that. */
  #mustBeVisible(sight: Sight): void {
    if (sight.kind === "free") return;
    if (sight.isHidden) throw diskError("EACCES", "read", this.path);
    if (sight.isFleeting) throw diskError("ESTALE", "read", this.path);
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

function isSightOf({ form, bytes }: Claim, sight: Sight): boolean {
  return isSame(takenBy(form, bytes), sight);
}
