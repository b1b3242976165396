// Staleness: which locks may be taken over, on what evidence, and which temporary files beside a lock may be swept.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { notALock, tempPathOf } from "./path.ts";
import { findFate, isForeignAlive } from "./owner.ts";
import { removeLockDirectory } from "./file-ops.ts";
import { observe, type LockFileForm, type Observation, type TakenLock } from "./observe.ts";

export interface StalenessOptions {
  /** null: never stale by age. */
  readonly staleMs: number | null;
  readonly form: LockFileForm;
}

/** `why` says for people why it counts as held or stale. */
export interface StalenessVerdict {
  readonly isStale: boolean;
  readonly why: string;
}

/** How long a file without a readable record counts as held: its writer may be about to write the record. */
const tornMs = 10_000;
/** After a longer gap between two observations the watch starts again: this process may have been stopped. */
const gapMsMax = tornMs / 4;

interface Watched {
  readonly signature: string;
  readonly unchangedMs: number;
  readonly lookedAtMs: number;
}

/** Remembers the last observation, so that a waiter knows how long nothing has changed. */
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

  /** Call it with every observation: a watch ends if the name was free or had another lock. */
  saw(observation: Observation): void {
    if (observation.kind === "free" || observation.signature !== this.#watched?.signature) this.#watched = undefined;
  }

  /**
   * Throws INVALID_PATH for a file that is not a lock and will not become one: it is neither removed nor waited for.
   */
  async judge(observation: TakenLock): Promise<StalenessVerdict> {
    const { record, contents, isHidden, isBare, changedWhileReading } = observation;
    if (contents === "data") throw notALock(this.#path, observation.form);
    if (isHidden) return held("this user may not read it");
    if (changedWhileReading) return held("it changes hands right now");
    if (isBare) return await this.#judgeBareDirectory(observation);
    if (contents === "malformed") return await this.#judgeMalformed(observation);
    if (record === undefined) return await this.#judgeTorn(observation);
    const fate = findFate(this.#ports, record);
    // Stale at once: a dead process neither works under the lock nor releases it.
    if (fate === "dead") return stale(`its holder, process ${record.pid}, is dead`);
    // Held at any age: Holdfast wrote the record, and its process is alive.
    if (fate === "alive") return held(`its holder, process ${record.pid}, is alive`);
    if (isForeignAlive(this.#ports, record)) return held(`process ${record.pid} is alive, and began before it`);
    return await this.#judgeByAge(observation, record.timestamp);
  }

  /** Applies protocol 1.0: compares the time in the file with this machine's clock. */
  async #judgeByAge(observation: TakenLock, timestamp: number): Promise<StalenessVerdict> {
    const { staleMs } = this.#options;
    if (staleMs === null) return held("locks of other programs and machines never go stale (staleMs: null)");
    const ageMs = this.#ports.clock.wallMs() - timestamp * 1000;
    if (ageMs > staleMs) return stale(`it is ${seconds(ageMs)} old`);
    if (ageMs >= 0) return held(`it is ${seconds(ageMs)} old, and counts for ${seconds(staleMs)}`);
    // The time is in the future, so some clock is wrong, and the lock could block for years. Use the time for which
    // the file has been unchanged instead.
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, with a time that is still to come`)
      : held(`its time is still to come, and it counts for ${seconds(staleMs)}`);
  }

  async #judgeTorn(observation: TakenLock): Promise<StalenessVerdict> {
    if ((await this.#unchangedMs(observation)) < tornMs)
      return held("it has no readable record, but may be about to get one");
    if (observation.contents !== "torn") throw notALock(this.#path, observation.form);
    return stale(`it has had no readable record for over ${seconds(tornMs)}`);
  }

  /** Another program has written it completely, and may hold the lock. Use the age of the file. */
  async #judgeMalformed(observation: TakenLock): Promise<StalenessVerdict> {
    const { staleMs } = this.#options;
    if (staleMs === null) return held("locks of other programs never go stale (staleMs: null)");
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, with a record that cannot be read`)
      : held(`it has a record that cannot be read, and counts for ${seconds(staleMs)}`);
  }

  /**
   * Other programs lock by `mkdir` alone, so a bare directory may be a lock. It may also be an empty data directory,
   * so only a semaphore of the directory form may take it over.
   */
  async #judgeBareDirectory(observation: TakenLock): Promise<StalenessVerdict> {
    const { staleMs, form } = this.#options;
    if (form === "file") return held("it is a directory, and a directory counts as held");
    if (staleMs === null) return held("locks of other programs never go stale (staleMs: null)");
    const unchangedMs = await this.#unchangedMs(observation);
    return unchangedMs > staleMs
      ? stale(`it has been there for ${seconds(unchangedMs)}, without a record`)
      : held(`it is a directory without a record, and counts for ${seconds(staleMs)}`);
  }

  /**
   * Returns how long the lock has been unchanged: by stamps of the file system at first, then as watched by this
   * process.
   */
  async #unchangedMs({ signature }: TakenLock): Promise<number> {
    const nowMs = this.#ports.clock.monotonicMs();
    const watched = this.#watched?.signature === signature ? this.#watched : undefined;
    const gapMs = watched === undefined ? Infinity : nowMs - watched.lookedAtMs;
    let unchangedMs = (watched?.unchangedMs ?? 0) + (gapMs <= gapMsMax ? gapMs : 0);
    // Not watched for a while, or never. The stamps may prove a greater age.
    if (gapMs > gapMsMax) unchangedMs = Math.max(unchangedMs, await findAgeMs(this.#ports, this.#path, this.#path));
    this.#watched = { signature, unchangedMs, lookedAtMs: nowMs };
    return unchangedMs;
  }
}

function stale(why: string): StalenessVerdict {
  return { isStale: true, why };
}

function held(why: string): StalenessVerdict {
  return { isStale: false, why };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

/** Temporary files of unknown owners are removed after this time. No process needs one for that long. */
const orphanMs = 3_600_000;

/**
 * Removes temporary files that dead processes left. Returns true if there were any. A living process that loses one
 * creates another.
 */
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
  // The record is of another machine, or missing: judge by age.
  return (await findAgeMs(ports, path, lockPath)) > orphanMs;
}

/**
 * Returns how long ago `path` was written, compared with a file that is created now: one clock stamps both. Returns 0
 * if that fails, because the file is gone or nothing can be created here: then there is no evidence of age.
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
    // If this fails, the next sweep removes it.
    await disk.unlink(probe).catch(() => undefined);
  }
}
