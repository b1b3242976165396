// Staleness: which locks may be taken from their holders, and on what evidence.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { notALock, tempPathOf } from "./path.ts";
import { findFate, isForeignAlive } from "./owner.ts";
import { removeLockDirectory } from "./file-ops.ts";
import { observe, type LockForm, type Observation, type Taken } from "./observe.ts";

export interface StalenessOptions {
  /** Null: never by age. */
  readonly staleMs: number | null;
  readonly form: LockForm;
}

/** For people: why it counts as held, or as stale. */
export interface Verdict {
  readonly isStale: boolean;
  readonly why: string;
}

/** How long a file without a readable record counts as held: somebody may be just about to write it. */
const tornMs = 10_000;
/** Two looks that are further apart were no watching: this process may have been stopped meanwhile. */
const gapMsMax = tornMs / 4;

interface Watched {
  readonly signature: string;
  readonly unchangedMs: number;
  readonly lookedAtMs: number;
}

/** Remembers what it saw, so that whoever waits learns how long nothing has changed. */
export class Staleness {
  readonly #ports: Ports;
  readonly #path: string;
  readonly #options: StalenessOptions;
  #watched: Watched | undefined;

  constructor(ports: Ports, path: string, options: StalenessOptions) {
    this.#ports = ports;
    this.#path = path;
    this.#options = options;
  }

  /** To be told of every look: a watch is over when something else was there meanwhile, or nothing. */
  saw(observation: Observation): void {
    if (observation.kind === "free" || observation.signature !== this.#watched?.signature) this.#watched = undefined;
  }

  /** INVALID_PATH for what is no lock and will be none: neither to be removed nor to be waited for. */
  async judge(observation: Taken): Promise<Verdict> {
    const { record, contents, isHidden, isBare, changedWhileReading } = observation;
    if (contents === "data") throw notALock(this.#path, observation.form);
    if (isHidden) return held("this user may not read it");
    if (changedWhileReading) return held("it changes hands right now");
    if (isBare) return await this.#judgeBareDirectory(observation);
    if (contents === "malformed") return await this.#judgeMalformed(observation);
    if (record === undefined) return await this.#judgeTorn(observation);
    const fate = findFate(this.#ports, record);
    // At once: nobody is left who could release it, and nobody who works under it.
    if (fate === "dead") return stale(`its holder, process ${record.pid}, is dead`);
    // Whatever its age: it says itself that it is ours, and its process is seen to live.
    if (fate === "alive") return held(`its holder, process ${record.pid}, is alive`);
    if (isForeignAlive(this.#ports, record)) return held(`process ${record.pid} is alive, and began before it`);
    return await this.#judgeByAge(observation, record.timestamp);
  }

  /** As the protocol has it: by the time in the file, and the clock of whoever asks. */
  async #judgeByAge(observation: Taken, timestamp: number): Promise<Verdict> {
    const { staleMs } = this.#options;
    if (staleMs === null) return held("locks of other programs and machines never go stale (staleMs: null)");
    const ageMs = this.#ports.clock.wallMs() - timestamp * 1000;
    if (ageMs > staleMs) return stale(`it is ${seconds(ageMs)} old`);
    if (ageMs >= 0) return held(`it is ${seconds(ageMs)} old, and counts for ${seconds(staleMs)}`);
    // From the future, by some clock that is wrong. It would block for years, so what counts is how long it has been lying there.
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, with a time that is still to come`)
      : held(`its time is still to come, and it counts for ${seconds(staleMs)}`);
  }

  async #judgeTorn(observation: Taken): Promise<Verdict> {
    if ((await this.#unchangedMs(observation)) < tornMs)
      return held("it has no readable record, but may be about to get one");
    if (observation.contents !== "torn") throw notALock(this.#path, observation.form);
    return stale(`it has had no readable record for over ${seconds(tornMs)}`);
  }

  /** A program has written it whole, in its own way, and may be at work. Its age is that of the file. */
  async #judgeMalformed(observation: Taken): Promise<Verdict> {
    const { staleMs } = this.#options;
    if (staleMs === null) return held("locks of other programs never go stale (staleMs: null)");
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, with a record that cannot be read`)
      : held(`it has a record that cannot be read, and counts for ${seconds(staleMs)}`);
  }

  /**
   * Other programs lock by nothing but `mkdir`, so that it is bare says nothing. It may as well be somebody's empty data directory, which only a semaphore of
   * the directory form could have made.
   */
  async #judgeBareDirectory(observation: Taken): Promise<Verdict> {
    const { staleMs, form } = this.#options;
    if (form === "file") return held("it is a directory, and a directory counts as held");
    if (staleMs === null) return held("locks of other programs never go stale (staleMs: null)");
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, without a record`)
      : held(`it is a directory without a record, and counts for ${seconds(staleMs)}`);
  }

  /** How long it has been as it is: by the stamps of the file system at first observation, and from then on by this process's own watching. */
  async #unchangedMs({ signature }: Taken): Promise<number> {
    const nowMs = this.#ports.clock.monotonicMs();
    const watched = this.#watched?.signature === signature ? this.#watched : undefined;
    const gapMs = watched === undefined ? Infinity : nowMs - watched.lookedAtMs;
    let unchangedMs = (watched?.unchangedMs ?? 0) + (gapMs <= gapMsMax ? gapMs : 0);
    // Not watched for a while, or never: the stamps may know more.
    if (gapMs > gapMsMax) unchangedMs = Math.max(unchangedMs, await findAgeMs(this.#ports, this.#path, this.#path));
    this.#watched = { signature, unchangedMs, lookedAtMs: nowMs };
    return unchangedMs;
  }
}

function stale(why: string): Verdict {
  return { isStale: true, why };
}

function held(why: string): Verdict {
  return { isStale: false, why };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

/** What nobody will come back for goes after this long at the latest. Longer than anybody takes between making and using one. */
const orphanMs = 3_600_000;

/** Removes what the dead have left beside a lock; true when there was something. To take one from the living does no harm: they make another. */
export async function sweepTemps(ports: Ports, lockPath: string): Promise<boolean> {
  let removed = false;
  for (const path of await findTemps(ports.disk, lockPath)) {
    if ((await isOrphan(ports, path, lockPath)) && (await removeTemp(ports.disk, path))) removed = true;
  }
  return removed;
}

async function removeTemp(disk: Disk, path: string): Promise<boolean> {
  if ((await disk.stat(path)).kind === "directory") return await removeLockDirectory(disk, path);
  await unlinkIfThere(disk, path);
  return true;
}

async function findTemps(disk: Disk, lockPath: string): Promise<string[]> {
  const directory = parentOf(lockPath);
  const prefix = lockPath.slice(lockPath.lastIndexOf("/") + 1);
  const names = await disk.list(directory);
  return names
    .filter((name) => name.startsWith(`${prefix}.`) && /^\.[0-9a-z]{26}\.tmp$/.test(name.slice(prefix.length)))
    .map((name) => `${directory === "/" ? "" : directory}/${name}`);
}

async function isOrphan(ports: Ports, path: string, lockPath: string): Promise<boolean> {
  const observation = await observe(ports.disk, path);
  if (observation.kind === "free") return false;
  const fate = observation.record && findFate(ports, observation.record);
  if (fate !== undefined) return fate === "dead";
  // A record of another machine or none at all: by its age.
  return (await findAgeMs(ports, path, lockPath)) > orphanMs;
}

/**
 * How long ago `path` was written, beside a file that is made now: both are stamped by the same clock, whoever's that is. 0 when it cannot be found out: it
 * went away meanwhile, or nothing can be made here. No evidence of age is none.
 */
export async function findAgeMs({ disk, random }: Ports, path: string, lockPath: string): Promise<number> {
  const probe = tempPathOf(lockPath, random);
  try {
    await disk.createFile(probe, new Uint8Array(), { sync: false, mode: 0o600 });
    const [probed, found] = [await disk.stat(probe), await disk.stat(path)];
    return Math.max(0, probed.mtimeMs - found.mtimeMs);
  } catch (error) {
    if (isHoldfastError(error)) return 0;
    throw error;
  } finally {
    // If it stays, the next sweep finds it.
    await disk.unlink(probe).catch(() => undefined);
  }
}
