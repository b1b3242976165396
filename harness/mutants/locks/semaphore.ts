// Known-wrong variants of the semaphore: each is what some program does, or what Holdfast nearly
// did.
import type { SemaphoreClaim } from "../../../src/locks/semaphore/owner.ts";
import { SemaphoreProtocol, type Attempt } from "../../../src/locks/semaphore/protocol.ts";
import { observe, type Observation, type TakenLock } from "../../../src/locks/semaphore/observe.ts";
import type { GuardResult } from "../../../src/locks/semaphore/guard.ts";
import { diskError, hasErrno, isOutage } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { semaphoreScenarios } from "../../scenarios/locks/semaphore.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * S1: only takers ask for the guard. A holder that has grown old, or acts for another process,
 * compares and unlinks.
 */
class GuardAtTakeoverOnly extends SemaphoreProtocol {
  protected override mustGuard(): boolean {
    return false;
  }
}

const leaseMs = 10_000;

/** S4: the guard is a file with a lease, which another process steals from a paused one. */
class GuardWithLease extends SemaphoreProtocol {
  protected override async tryGuarded<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    const { disk, clock } = this.ports;
    const guard = `${this.path}.lease`;
    const bytes = Buffer.from(String(clock.wallMs() + leaseMs));
    try {
      await disk.createFile(guard, bytes, { sync: false });
    } catch (error) {
      if (!hasErrno(error, "EEXIST")) throw error;
      const until = await readText(disk, guard);
      if (until === "" || clock.wallMs() < Number(until)) return undefined;
      await disk.unlink(guard).catch(() => undefined);
      return await this.tryGuarded(action);
    }
    try {
      return { result: await action() };
    } finally {
      await disk.unlink(guard).catch(() => undefined);
    }
  }
}

/**
 * Removes the stale lock, and creates on the free name, as protocol 1.0 and most lock packages do.
 */
export class TakeoverByUnlink extends SemaphoreProtocol {
  protected override async tryGuarded<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    return { result: await action() };
  }

  protected override async takeOver(): Promise<boolean> {
    await this.ports.disk.unlink(this.path).catch(() => undefined);
    // Some process creates on the free name: perhaps this one, in the next round.
    return false;
  }
}

/** Moves the stale lock to a name of its own and checks it there; another lock is put back. */
class TakeoverByRenameAndVerify extends SemaphoreProtocol {
  protected override async tryGuarded<T>(action: () => Promise<T>): Promise<GuardResult<T> | undefined> {
    return { result: await action() };
  }

  protected override async takeOver(observation: TakenLock): Promise<boolean> {
    const { disk, host } = this.ports;
    const mine = `${this.path}.${host.pid}.stale`;
    try {
      await disk.rename(this.path, mine);
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      return false;
    }
    const moved = await observe(disk, mine);
    // The name is free meanwhile: a process that comes now enters beside the holder of the moved
    // lock.
    if (moved.kind === "taken" && moved.signature !== observation.signature)
      await disk.link(mine, this.path).catch(() => undefined);
    await disk.unlink(mine);
    return false;
  }
}

/** Checks, then writes, then replaces whatever lock exists by then. */
class TakeoverByReplacing extends SemaphoreProtocol {
  protected override async takeOver(observation: TakenLock): Promise<boolean> {
    const { disk, host, clock } = this.ports;
    if (!(await this.isStillStale(observation))) return false;
    const mine = `${this.path}.${host.pid}.new`;
    const record = `pid=${host.pid}\ntimestamp=${Math.floor(clock.wallMs() / 1000)}\n`;
    await disk.createFile(mine, Buffer.from(record), { sync: false });
    await disk.rename(mine, this.path);
    return true;
  }
}

/** Moves the stale lock away and makes its own, without checking what it has moved. */
class TakeoverWithoutASecondLook extends SemaphoreProtocol {
  protected override async takeOver(observation: TakenLock, make: () => Promise<boolean>): Promise<boolean> {
    if (!(await this.isStillStale(observation))) return false;
    await this.ports.disk.rename(this.path, `${this.path}.${this.ports.host.pid}.stale`).catch(() => undefined);
    return await make();
  }
}

/** Enters on a free name at once, while a taker has moved another lock away by mistake. */
class FreeNameCountsAtOnce extends SemaphoreProtocol {
  protected override async isSettled(): Promise<boolean> {
    return true;
  }
}

/** Reads the pid in the file, and unlinks it if that is its own. */
class ReleaseByReadThenUnlink extends SemaphoreProtocol {
  override async giveUp(claim: SemaphoreClaim): Promise<boolean> {
    const observation = await this.observe();
    if (observation.kind === "free" || observation.record?.pid !== claim.record.pid) return false;
    await this.ports.disk.unlink(this.path).catch(() => undefined);
    return true;
  }
}

/** Refreshes its lock by emptying and filling it, and takes an empty file for a free name. */
export class RefreshByTruncate extends SemaphoreProtocol {
  override async attempt(tag: string | undefined): Promise<Attempt> {
    const attempt = await super.attempt(tag);
    if ("claim" in attempt) await this.#refresh(attempt.claim);
    return attempt;
  }

  override async observe(): Promise<Observation> {
    const observation = await super.observe();
    if (observation.kind === "free" || !observation.signature.startsWith("file:@")) return observation;
    await this.ports.disk.unlink(this.path).catch(() => undefined);
    return { kind: "free" };
  }

  async #refresh({ bytes, record }: SemaphoreClaim): Promise<void> {
    const { disk } = this.ports;
    const empty = `${this.path}.${record.pid}.empty`;
    await disk.createFile(empty, new Uint8Array(), { sync: false });
    // The disk port cannot truncate; to a reader, replacing the file by an empty one looks the
    // same.
    await disk.rename(empty, this.path);
    const file = await disk.open(this.path, "write").catch(() => undefined);
    await file?.write(0, bytes);
    await file?.close();
  }
}

async function readText(disk: Disk, path: string): Promise<string> {
  try {
    return Buffer.from(await disk.readFile(path, 100)).toString();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return "";
    throw error;
  }
}

const together = /are inside together/;

function mutant(name: string, about: string, Protocol: typeof SemaphoreProtocol, scenario: string): Mutant {
  return { name, about, scenario: scenarioNamed(semaphoreScenarios(Protocol), scenario), breaks: together };
}

/** Reports an error if the lock file is replaced while it is read. */
class StaleHandleIsAFailure extends SemaphoreProtocol {
  override async observe(): Promise<Observation> {
    const observation = await super.observe();
    if (observation.kind === "taken" && observation.changedWhileReading) throw diskError("ESTALE", "read", this.path);
    return observation;
  }
}

/** Repeats a removal whose reply was lost, without checking whose lock it is by now. */
class ReleaseRepeatedBlindly extends SemaphoreProtocol {
  override async giveUp(claim: SemaphoreClaim): Promise<boolean> {
    const { disk } = this.ports;
    if (!(await this.isStanding(claim))) return false;
    const unlink = (): Promise<void> => disk.unlink(this.path);
    await unlink().catch((error: unknown) => (isOutage(error) ? unlink().catch(() => undefined) : undefined));
    return true;
  }
}

export const semaphoreMutants: readonly Mutant[] = [
  {
    ...mutant(
      "semaphore: a stale handle is a failure",
      "The lock changes hands on another machine while it is read, and a waiter gets an I/O error.",
      StaleHandleIsAFailure,
      "semaphore: two machines whose handles go stale",
    ),
    breaks: /failed: .*ESTALE/,
  },
  mutant(
    "semaphore: release repeated without a look",
    "The server had removed the lock before it went away, another machine took it, and its lock is removed.",
    ReleaseRepeatedBlindly,
    "semaphore: two machines whose server goes away",
  ),
  mutant(
    "semaphore: guard at takeover only (S1)",
    "An old holder unlinks, a third creates on the free name, and the taker's rename replaces the lock of the third.",
    GuardAtTakeoverOnly,
    "semaphore: an old holder lets go beside a taker and a third",
  ),
  mutant(
    "semaphore: release for another without the guard",
    "The owner dies between look and unlink, another process takes over, and the taker's lock is removed.",
    GuardAtTakeoverOnly,
    "semaphore: a helper lets go for a script that is killed",
  ),
  mutant(
    "semaphore: guard with a lease (S4)",
    "A taker is paused past the lease of its guard, another one takes over, and the first one's rename replaces its lock.",
    GuardWithLease,
    "semaphore: a taker that is stopped",
  ),
  mutant(
    "semaphore: takeover by unlink",
    "The second taker unlinks the lock that the first one has just made.",
    TakeoverByUnlink,
    "semaphore: two takers of a stale lock",
  ),
  mutant(
    "semaphore: takeover by rename-and-verify",
    "While the second taker checks what it has moved away, the name of the first one's lock is free.",
    TakeoverByRenameAndVerify,
    "semaphore: two takers and a third on a free name",
  ),
  mutant(
    "semaphore: takeover by replacing",
    "Another program, which has no guard, has taken over and works; its lock is overwritten.",
    TakeoverByReplacing,
    "semaphore: a taker beside a program that takes over by the letter",
  ),
  mutant(
    "semaphore: takeover without a second look",
    "What was moved away is the lock of another program, which has taken over in between and works.",
    TakeoverWithoutASecondLook,
    "semaphore: a taker beside a program that takes over by the letter",
  ),
  mutant(
    "semaphore: a free name counts at once",
    "The name was free only because a taker had moved the lock of another program, and could not put it back any more.",
    FreeNameCountsAtOnce,
    "semaphore: a taker beside such a program, and a third on a free name",
  ),
  mutant(
    "semaphore: release by read-then-unlink",
    "Between the two another process takes over, and the taker's lock is removed.",
    ReleaseByReadThenUnlink,
    "semaphore: an old holder lets go and comes back beside a taker",
  ),
  mutant(
    "semaphore: refresh by truncate",
    "A process that looks during a refresh finds the file empty, and takes the name for free.",
    RefreshByTruncate,
    "semaphore: two processes on a free name",
  ),
];
