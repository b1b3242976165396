// How doctors that look for a peer know of each other: one file name each in a shared directory,
// renewed all the time, read by listing alone.
import { isLink, removeDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";

/** What one of them is about. "with" and "takes" are bound; the others are free. */
export interface Intent {
  readonly state: "seeks" | "accepts" | "takes" | "with";
  /** The one that it is about; "nobody" for "seeks". */
  readonly whom: string;
}

export const seeking: Intent = { state: "seeks", whom: "nobody" };

export interface Sighting {
  readonly id: string;
  readonly intent: Intent;
}

interface Watched {
  intent: Intent;
  count: number;
  /** When this count was first seen, by my monotonic clock. */
  sinceMs: number;
  /**
   * It was renewed while I watched: its doctor is alive. What never changes was left by a run that
   * was aborted.
   */
  changed: boolean;
  /** It was in the last listing. */
  isThere: boolean;
}

/**
 * Nothing but a name, `<id>.<count>.<state>.<whom>`: a listing tells all of it, and a listing is
 * what shares answer truly.
 */
const namePattern = /^([0-9a-z]{26})\.(\d+)\.(seeks|accepts|takes|with)\.([0-9a-z]+)$/;
const sessionPattern = /^([0-9a-z]{26})-([0-9a-z]{26})$/;

const renewMs = 500;
/**
 * Ten renewals. One that is taken for dead wrongly loses nothing: its next renewal makes its name
 * anew.
 */
const silentMs = 5_000;
const makesMax = 5;

export class Presence {
  readonly id: string;
  readonly #ports: Ports;
  readonly #room: string;
  readonly #watched = new Map<string, Watched>();
  /** Directories of pairs, and since when I see each. */
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

  /** Tells the others, at once. */
  async show(intent: Intent): Promise<void> {
    this.#intent = intent;
    const name = `${this.id}.${++this.#count}.${intent.state}.${intent.whom}`;
    await this.#make(`${this.#room}/${name}`);
    // The new name first: one of the two is there at every moment.
    if (this.#shown !== undefined) await unlinkIfThere(this.#ports.disk, `${this.#room}/${this.#shown}`);
    this.#shown = name;
    this.#shownMs = this.#ports.clock.monotonicMs();
  }

  /** Renews and looks, when it is time to. */
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

  /** Those that were seen to be alive, the lowest id first. */
  others(): Sighting[] {
    return [...this.#watched]
      .filter(([id, watched]) => watched.isThere && watched.changed && this.silenceMs(id) < silentMs)
      .map(([id, { intent }]) => ({ id, intent }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** For how long nothing new was seen of it, of the time that I looked. */
  silenceMs(id: string): number {
    const watched = this.#watched.get(id);
    return watched === undefined ? Infinity : this.#ports.clock.monotonicMs() - watched.sinceMs;
  }

  /**
   * Takes my name away, what aborted runs left behind, and the room if it is empty. When patient it
   * waits for a few seconds where something may be a leftover or a doctor that has not renewed yet.
   * False when something could not be removed.
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
      // Others are still in there; the last one takes it away.
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
    }
    return isSwept;
  }

  async #make(path: string): Promise<void> {
    for (let makes = 1; ; makes++) {
      try {
        return await this.#ports.disk.createFile(path, new Uint8Array(), { sync: false });
      } catch (error) {
        // The last one of another pair has just taken the room away.
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

  /** False when a leftover could not be removed. */
  async #sweep(): Promise<boolean> {
    const { disk } = this.#ports;
    for (const name of await this.#list()) {
      const id = namePattern.exec(name)?.[1] ?? "";
      // A doctor that came since my last look is not known to me, and not silent.
      if (this.#watched.has(id) && this.silenceMs(id) >= silentMs) await unlinkIfThere(disk, `${this.#room}/${name}`);
    }
    let isSwept = true;
    for (const name of this.#sessions.keys())
      if (this.#isOver(name)) isSwept = (await removeSession(disk, `${this.#room}/${name}`)) && isSwept;
    return isSwept;
  }

  /** Nothing was seen of either of the two for long enough. */
  #isOver(session: string): boolean {
    const sinceMs = this.#sessions.get(session);
    if (sinceMs === undefined || this.#ports.clock.monotonicMs() - sinceMs < silentMs) return false;
    return session.split("-").every((id) => this.silenceMs(id) >= silentMs);
  }

  /** Whether something in the room is neither known to be alive nor to be left over. */
  #isUndecided(): boolean {
    const isUnknown = (id: string): boolean =>
      this.silenceMs(id) < silentMs && this.#watched.get(id)?.changed === false;
    if ([...this.#watched].some(([id, { isThere }]) => isThere && isUnknown(id))) return true;
    return [...this.#sessions.keys()].some(
      (name) => !this.#isOver(name) && !name.split("-").some((id) => this.others().some((other) => other.id === id)),
    );
  }
}

/**
 * The directories of a session, one for each kind of round: names that are being tested stay apart
 * from the notes.
 */
export const sessionParts: readonly string[] = ["link", "create", "lock", "sight", "clock"];

/** False when something in it could not be removed. */
export async function removeSession(disk: Ports["disk"], path: string): Promise<boolean> {
  // Any user of the folder can put a link there, to a place where directories of these names are
  // not ours.
  if (await isLink(disk, path)) return false;
  for (const part of sessionParts) if (!(await removeDirectory(disk, `${path}/${part}`))) return false;
  return await removeDirectory(disk, path);
}
