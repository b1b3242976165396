// Path locks by lock files beside the locked paths, as in OpenViking. Each step that lets two
// holders in can be switched on separately.
import type { LockMode } from "../../../src/common.ts";
import { parentOf, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { areInConflict } from "../../../src/locks/table/conflict.ts";
import type { Clock } from "../../../src/ports/clock.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../src/ports/disk.ts";
import type { ActorContext } from "../../../src/testing/explorer/scenario.ts";
import { expireMs, lockRooms, seedLockScenarios, type FileLocks } from "../../scenarios/locks/seed-locks.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * How each step of the protocol works. The last value of each option is sound; the others are those
 * of the protocol or of one of its two implementations.
 */
export interface SeedSteps {
  readonly publish: "write" | "link";
  /** Which process yields in a conflict that is found after the lock file was created. */
  readonly conflict: "the later one" | "the one that finds it";
  readonly removal: "by name" | "by guard";
  readonly refresh: "empty and write" | "read and overwrite" | "through the file that was made";
  readonly release: "read and unlink" | "by guard";
  /**
   * Where the lock file of a directory is: beside it or in it, depending on a stat; in it; or
   * outside the tree.
   */
  readonly place: "by stat" | "inside" | "apart";
  readonly age: "by clock" | "by stamps";
}

export const soundSteps: SeedSteps = {
  publish: "link",
  conflict: "the one that finds it",
  removal: "by guard",
  refresh: "through the file that was made",
  release: "by guard",
  place: "apart",
  age: "by stamps",
};

/** A lock file that is not empty. */
interface Found {
  readonly file: string;
  readonly path: string;
  readonly id: string;
  readonly sinceMs: number;
  readonly mode: LockMode;
}

export class SeedPathLocks implements FileLocks {
  readonly #name: string;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #steps: SeedSteps;
  #count = 0;
  /** The held lock, and its open file, which stays the same whatever takes its name later. */
  #mine: Found | undefined;
  #made: DiskFile | undefined;

  constructor({ name, ports: { disk, clock } }: ActorContext, steps: SeedSteps) {
    this.#name = name;
    this.#disk = disk;
    this.#clock = clock;
    this.#steps = steps;
  }

  async acquire(path: string, mode: LockMode): Promise<boolean> {
    const file = await this.#fileOf(path, mode);
    const mine = { file, path, mode, id: `${this.#name}-${++this.#count}`, sinceMs: this.#clock.wallMs() };
    for (const other of await this.#conflicting(mine))
      if (!(await this.#isStale(other)) || !(await this.#removeStale(other))) return false;
    if (!(await this.#publish(mine))) return false;
    this.#mine = mine;
    if ((await this.#conflicting(mine)).some((other) => this.#sendsAway(other, mine))) {
      await this.release();
      return false;
    }
    return await this.#isMine(mine);
  }

  async refresh(): Promise<boolean> {
    const mine = this.#mine;
    if (mine === undefined) return false;
    const token = tokenOf({ ...mine, sinceMs: this.#clock.wallMs() });
    switch (this.#steps.refresh) {
      case "empty and write":
        // The disk port cannot truncate. A reader treats a file of blanks as empty.
        await this.#made?.write(0, Buffer.alloc(token.length, " "));
        await this.#made?.write(0, token);
        break;
      case "read and overwrite":
        if (!(await this.#isMine(mine))) return false;
        await this.#disk.createFile(`/temp/${this.#name}/anew`, token, { sync: false });
        await this.#disk.rename(`/temp/${this.#name}/anew`, mine.file);
        break;
      case "through the file that was made":
        await this.#made?.write(0, token);
        // After the write: the process with the guard looks at the age again when it has the guard,
        // so one of the two sees the other.
        if (await this.#disk.canOpen(guardOf(mine))) return false;
    }
    return await this.#isMine(mine);
  }

  async release(): Promise<void> {
    const mine = this.#mine;
    if (mine === undefined) return;
    this.#mine = undefined;
    await this.#made?.close();
    if (await (this.#steps.release === "by guard" ? this.#winGuard(mine) : this.#isMine(mine)))
      await unlinkIfThere(this.#disk, mine.file);
  }

  async #fileOf(path: string, mode: LockMode): Promise<string> {
    if (this.#steps.place === "apart") return `${lockRooms.locks}/${encodeURIComponent(path)}`;
    const stat = this.#steps.place === "by stat" ? await orAbsent(this.#disk.stat(path)) : undefined;
    if (mode === "tree" || stat?.kind === "directory") return `${path}/.path.ovlock`;
    return `${parentOf(path)}/${exactPrefix}${path.slice(path.lastIndexOf("/") + 1)}`;
  }

  /** Returns the locks that conflict with `mine`, whatever their age. */
  async #conflicting(mine: Found): Promise<Found[]> {
    const found: Found[] = [];
    for (const spot of await this.#spots(mine)) {
      const other = await this.#find(spot);
      if (other !== undefined && other.id !== mine.id && areInConflict(claimOf(mine), claimOf(other)))
        found.push(other);
    }
    return found;
  }

  /**
   * The lock's own file, those of the trees above, and for a tree all that are in it (one level is
   * enough here).
   */
  async #spots({ file, path, mode }: Found): Promise<Pick<Found, "file" | "path">[]> {
    if (this.#steps.place === "apart") {
      const names = await this.#disk.list(lockRooms.locks);
      return names.map((name) => ({ file: `${lockRooms.locks}/${name}`, path: decodeURIComponent(name) }));
    }
    const spots = [{ file, path }];
    for (let above = parentOf(path); above !== "/"; above = parentOf(above))
      spots.push({ file: `${above}/.path.ovlock`, path: above });
    if (mode === "tree")
      for (const name of (await orAbsent(this.#disk.list(path))) ?? [])
        if (name.startsWith(exactPrefix))
          spots.push({ file: `${path}/${name}`, path: `${path}/${name.slice(exactPrefix.length)}` });
    return spots;
  }

  /** An empty file is not a lock: its creator came no further. */
  async #find(spot: Pick<Found, "file" | "path">): Promise<Found | undefined> {
    const bytes = await orAbsent(this.#disk.readFile(spot.file, 1000));
    const text = Buffer.from(bytes ?? []).toString();
    const [id = "", sinceMs, type] = text.trim().split(":");
    return id === "" ? undefined : { ...spot, id, sinceMs: Number(sinceMs), mode: type === "T" ? "tree" : "exact" };
  }

  async #isMine(mine: Found): Promise<boolean> {
    return (await this.#find(mine))?.id === mine.id;
  }

  async #isStale({ file, sinceMs }: Found): Promise<boolean> {
    if (this.#steps.age === "by clock") return this.#clock.wallMs() - sinceMs > expireMs;
    const probe = `/temp/${this.#name}/probe`;
    await this.#disk.createFile(probe, new Uint8Array(), { sync: false });
    const [then, now] = [await orAbsent(this.#disk.stat(file)), await this.#disk.stat(probe)];
    await this.#disk.unlink(probe);
    return then !== undefined && now.mtimeMs - then.mtimeMs > expireMs;
  }

  /** Returns false if the file is gone or no longer stale. */
  async #removeStale(stale: Found): Promise<boolean> {
    if (this.#steps.removal === "by guard") {
      if (!(await this.#winGuard(stale))) return false;
      const again = await this.#find(stale);
      if (again?.id !== stale.id || !(await this.#isStale(again))) {
        await this.#disk.unlink(guardOf(stale));
        return false;
      }
    }
    await unlinkIfThere(this.#disk, stale.file);
    return true;
  }

  /**
   * Only the process that makes this name, which belongs to one lock and never to another, removes
   * the file of the lock.
   */
  async #winGuard(lock: Found): Promise<boolean> {
    try {
      await this.#disk.createFile(guardOf(lock), new Uint8Array(), { sync: false });
      return true;
    } catch (error) {
      if (hasErrno(error, "EEXIST")) return false;
      throw error;
    }
  }

  async #publish(mine: Found): Promise<boolean> {
    const temp = `/temp/${this.#name}/${mine.id}`;
    this.#made = await this.#disk.open(temp, "create");
    await this.#made.write(0, tokenOf(mine));
    await this.#disk.mkdir(parentOf(mine.file)).catch(() => undefined); // It usually exists already.
    try {
      if (this.#steps.publish === "link") await this.#disk.link(temp, mine.file);
      else await this.#disk.rename(temp, mine.file);
      return true;
    } catch (error) {
      if (!hasErrno(error, "EEXIST", "ENOENT")) throw error;
      await this.#made.close();
      return false;
    } finally {
      await unlinkIfThere(this.#disk, temp);
    }
  }

  #sendsAway(other: Found, mine: Found): boolean {
    if (this.#steps.conflict === "the one that finds it") return true;
    return other.sinceMs < mine.sinceMs || (other.sinceMs === mine.sinceMs && other.id < mine.id);
  }
}

async function orAbsent<T>(looking: Promise<T>): Promise<T | undefined> {
  return await looking.catch((error: unknown) => {
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
    return undefined;
  });
}

/** Without the hash of the path, which keeps equal names apart and is of no importance here. */
const exactPrefix = ".exact.ovlock.";

function claimOf({ path, mode }: Found) {
  return { path: path.slice(1), mode, shared: false };
}

/** Of a fixed length, so that a new text overwrites the old one completely. */
function tokenOf({ id, sinceMs, mode }: Found): Uint8Array {
  return Buffer.from(`${id}:${String(sinceMs).padStart(19, "0")}:${mode === "tree" ? "T" : "E"}`);
}

const guardOf = ({ id }: Found): string => `${lockRooms.guards}/${id}`;

function mutant(name: string, about: string, wrong: Partial<SeedSteps>, scenario: string): Mutant {
  const scenarios = seedLockScenarios((context) => new SeedPathLocks(context, { ...soundSteps, ...wrong }));
  const breaks = /are inside together/;
  return { name: `seed: ${name}`, about, scenario: scenarioNamed(scenarios, `seed: ${scenario}`), breaks };
}

export const seedPathLockMutants: readonly Mutant[] = [
  mutant(
    "plain write",
    "Both find no lock; one makes its own and enters, and the other overwrites it.",
    { publish: "write" },
    "two want a free path",
  ),
  mutant(
    "the earlier time stamp wins",
    "A time stamp is taken before the lock can be seen, so the process with the earlier one may come last.",
    { conflict: "the later one" },
    "a tree and a file in it",
  ),
  mutant(
    "stale lock removed by name",
    "What the second one removes is the lock of the first.",
    { removal: "by name" },
    "two find a lock that has expired",
  ),
  mutant(
    "refresh by truncate and write",
    "A process that reads in between finds an empty file, which is no lock.",
    { refresh: "empty and write" },
    "a newcomer looks during a refresh",
  ),
  mutant(
    "refresh by read and overwrite",
    "Another process takes over between the two, and its lock is replaced.",
    { refresh: "read and overwrite" },
    "an expired holder refreshes beside a taker",
  ),
  mutant(
    "release by read and unlink",
    "Another process takes over between the two; its lock is removed, and a third one enters.",
    { release: "read and unlink" },
    "an expired holder lets go beside a taker and a third",
  ),
  mutant(
    "name of the lock by stat",
    "A path has one lock file while it is missing and another one while it is a directory.",
    { place: "by stat" },
    "a directory is made while two want its path",
  ),
  mutant(
    "lock removed with its tree",
    "rm -r removes the lock file before the rest.",
    { place: "inside" },
    "a tree is removed under its lock",
  ),
  mutant(
    "lock moved with its tree",
    "mv takes the lock file along, and leaves none behind.",
    { place: "inside" },
    "a tree is moved under its lock",
  ),
  mutant(
    "age by two clocks",
    "A clock that is ahead makes every lock of another machine stale.",
    { age: "by clock" },
    "a clock that is ahead",
  ),
];
