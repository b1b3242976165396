// Presence: how doctors that look for a peer find each other. Each keeps renewing one file name in
// a shared directory, and the others only list it.
import { isLink, removeDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";

/** The intent of a doctor. "with" and "takes" are bound; the others are free. */
export interface Intent {
  readonly state: "seeks" | "accepts" | "takes" | "with";
  /** The id that the intent concerns; "nobody" for "seeks". */
  readonly whom: string;
}

export const seeking: Intent = { state: "seeks", whom: "nobody" };

export interface SeenDoctor {
  readonly id: string;
  readonly intent: Intent;
}

interface Watched {
  intent: Intent;
  count: number;
  /** When this count was first seen, by this process's monotonic clock. */
  sinceMs: number;
  /**
   * True if the name was renewed while this process watched: its doctor is alive. A name that never
   * changes was left by an aborted run.
   */
  changed: boolean;
  /** True if it was in the last listing. */
  isThere: boolean;
}

/**
 * All information is in the name, `<id>.<count>.<state>.<whom>`: a listing returns it, and listings
 * are what shares answer correctly.
 */
const namePattern = /^([0-9a-z]{26})\.(\d+)\.(seeks|accepts|takes|with)\.([0-9a-z]+)$/;
const sessionPattern = /^([0-9a-z]{26})-([0-9a-z]{26})$/;

const renewMs = 500;
/** Ten renewals. A doctor that is wrongly judged dead loses nothing: its next renewal creates its name again. */
const silentMs = 5_000;
const makesMax = 5;

export class Presence {
  readonly id: string;
  readonly #ports: Ports;
  readonly #room: string;
  readonly #watched = new Map<string, Watched>();
  /** Directories of pairs, and when each was first seen. */
  #sessions = new Map<string, number>();
  #intent: Intent = seeking;
  #count = 0;
  #shown: string | undefined;
  #shownMs = 0;

  constructor(ports: Ports, room: string) {
    this.#ports = ports;
    this.#room = room;
    this.id = randomName(ports.random.bytes(16));
  }

  /** Publishes the intent at once. */
  async show(intent: Intent): Promise<void> {
    this.#intent = intent;
    const name = `${this.id}.${++this.#count}.${intent.state}.${intent.whom}`;
    await this.#make(`${this.#room}/${name}`);
    // Create the new name first: one of the two must exist at every moment.
    if (this.#shown !== undefined) await unlinkIfThere(this.#ports.disk, `${this.#room}/${this.#shown}`);
    this.#shown = name;
    this.#shownMs = this.#ports.clock.monotonicMs();
  }

  /** Renews its name and lists the others, if it is time to. */
  async keepUp(): Promise<void> {
    if (this.#shown !== undefined && this.#ports.clock.monotonicMs() - this.#shownMs < renewMs) return;
    await this.show(this.#intent);
    await this.look();
  }

  async look(): Promise<void> {
    const names = await this.#list();
    const nowMs = this.#ports.clock.monotonicMs();
    for (const watched of this.#watched.values()) watched.isThere = false;
    for (const name of names) this.#see(name, nowMs);
    const sessions = names.filter((name) => sessionPattern.test(name));
    this.#sessions = new Map(sessions.map((name) => [name, this.#sessions.get(name) ?? nowMs]));
  }

  /** Returns the doctors known to be alive, lowest id first. */
  others(): SeenDoctor[] {
    return [...this.#watched]
      .filter(([id, watched]) => watched.isThere && watched.changed && this.silenceMs(id) < silentMs)
      .map(([id, { intent }]) => ({ id, intent }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Returns how long this process, which watches, has seen no change of that doctor's name. */
  silenceMs(id: string): number {
    const watched = this.#watched.get(id);
    return watched === undefined ? Infinity : this.#ports.clock.monotonicMs() - watched.sinceMs;
  }

  /**
   * Removes this doctor's name, what aborted runs left behind, and the room if it is empty. If
   * patient, it waits a few seconds for names that may be leftovers or doctors that have not
   * renewed yet. False if something could not be removed.
   */
  async leave({ patient }: { readonly patient: boolean }): Promise<boolean> {
    const { disk, clock } = this.#ports;
    if (this.#shown !== undefined) await unlinkIfThere(disk, `${this.#room}/${this.#shown}`);
    let isSwept = true;
    for (let waitedMs = 0; ; waitedMs += renewMs) {
      await this.look();
      isSwept = await this.#sweep();
      if (!patient || !this.#isUndecided() || waitedMs > 2 * silentMs) break;
      await clock.sleep(renewMs);
    }
    try {
      await disk.rmdir(this.#room);
    } catch (error) {
      // Others are still in the room. The last one removes it.
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
    }
    return isSwept;
  }

  async #make(path: string): Promise<void> {
    for (let makes = 1; ; makes++) {
      try {
        return await this.#ports.disk.createFile(path, new Uint8Array(), { sync: false });
      } catch (error) {
        // The last doctor of another pair just removed the room.
        if (!hasErrno(error, "ENOENT", "ESTALE") || makes >= makesMax) throw error;
      }
      try {
        await this.#ports.disk.mkdir(this.#room);
      } catch (error) {
        if (!hasErrno(error, "EEXIST")) throw error;
      }
    }
  }

  async #list(): Promise<string[]> {
    try {
      return await this.#ports.disk.list(this.#room);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return [];
      throw error;
    }
  }

  #see(name: string, nowMs: number): void {
    const [, id, digits, state, whom] = namePattern.exec(name) ?? [];
    if (id === undefined || state === undefined || whom === undefined || id === this.id) return;
    const count = Number(digits);
    const intent = { state: state as Intent["state"], whom };
    const watched = this.#watched.get(id);
    if (watched === undefined) this.#watched.set(id, { intent, count, sinceMs: nowMs, changed: false, isThere: true });
    else if (count > watched.count)
      Object.assign(watched, { intent, count, sinceMs: nowMs, changed: true, isThere: true });
    else watched.isThere = true;
  }

  /** False if a leftover could not be removed. */
  async #sweep(): Promise<boolean> {
    const { disk } = this.#ports;
    for (const name of await this.#list()) {
      const id = namePattern.exec(name)?.[1] ?? "";
      // A doctor that came since the last listing is not known, and not silent.
      if (this.#watched.has(id) && this.silenceMs(id) >= silentMs) await unlinkIfThere(disk, `${this.#room}/${name}`);
    }
    let isSwept = true;
    for (const name of this.#sessions.keys())
      if (this.#isOver(name)) isSwept = (await removeSession(disk, `${this.#room}/${name}`)) && isSwept;
    return isSwept;
  }

  /** True if nothing was seen of either of the two for long enough. */
  #isOver(session: string): boolean {
    const sinceMs = this.#sessions.get(session);
    if (sinceMs === undefined || this.#ports.clock.monotonicMs() - sinceMs < silentMs) return false;
    return session.split("-").every((id) => this.silenceMs(id) >= silentMs);
  }

  /** True if the room has something that is neither known to be alive nor known to be a leftover. */
  #isUndecided(): boolean {
    const isUnknown = (id: string): boolean =>
      this.silenceMs(id) < silentMs && this.#watched.get(id)?.changed === false;
    if ([...this.#watched].some(([id, { isThere }]) => isThere && isUnknown(id))) return true;
    return [...this.#sessions.keys()].some(
      (name) => !this.#isOver(name) && !name.split("-").some((id) => this.others().some((other) => other.id === id)),
    );
  }
}

/** The directories of a session, one for each kind of round: names under test stay apart from the notes. */
export const sessionParts: readonly string[] = ["link", "create", "lock", "sight", "clock"];

/** Returns false if something in it could not be removed. */
export async function removeSession(disk: Ports["disk"], path: string): Promise<boolean> {
  // Any user of the folder can put a link there. Directories of these names behind it are not ours.
  if (await isLink(disk, path)) return false;
  for (const part of sessionParts) if (!(await removeDirectory(disk, `${path}/${part}`))) return false;
  return await removeDirectory(disk, path);
}
