// DeadHolderCleanup removes what dead holders left on a ground, in a safe order.
import { isId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { signal } from "../../telemetry/signals.ts";
import { isThere, removeDirectory, unlinkUnlessForeign } from "../publish/directory.ts";
import { renameOnce } from "../publish/publish.ts";
import type { Staging } from "../publish/staging.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import { withServerClock } from "./server-age.ts";

/** How many death records one sweep removes: a process that opens a ground must not wait for years of deaths. */
const deathsPerSweep = 1000;
/** A process that died while joining owned nothing, so its age decides, by the server's own stamps. */
const unjoinedMsMax = 3_600_000;

export class DeadHolderCleanup {
  readonly #ports: Ports;
  readonly #layout: GroundLayout;

  constructor(ports: Ports, layout: GroundLayout) {
    this.#ports = ports;
    this.#layout = layout;
  }

  /**
   * Renames the holder's record to its death record. The death is final and visible to all
   * processes before anything of the holder is removed.
   */
  async declareDead({ id, host, pid }: HolderRecord): Promise<void> {
    // False: another process declared it dead, or it ended normally.
    if (!(await renameOnce(this.#ports.disk, this.#layout.record(id), this.#layout.deathRecord(id)))) return;
    signal("holdfast:process.dead", () => ({ location: this.#layout.directory, holder: id, host, pid }));
  }

  async declareDeadAndRemove(holder: HolderRecord): Promise<void> {
    await this.declareDead(holder);
    await this.#removeTraces(holder.id);
  }

  /** True if a holder that was declared dead or has ended can no longer stage or publish anything. */
  async settle(id: string): Promise<boolean> {
    // The record may have been missed: the client of a share may have cached its absence.
    const { disk } = this.#ports;
    if (await isThere(disk, this.#layout.record(id))) return false;
    await this.#removeTraces(id);
    // The removal does not prove it: if the client has cached that the directory is absent, nothing was removed.
    return !(await isThere(disk, this.#layout.temp(id)));
  }

  /**
   * Removes all files of holders that were declared dead, and of processes that died an hour ago
   * while joining. It also removes the death record, unless this sweep `declared` the death. Never
   * touches the files of `own`.
   */
  async sweep(staging: Staging, own: HolderRecord, declared: readonly HolderRecord[]): Promise<void> {
    const { disk } = this.#ports;
    const names = new Set(await disk.list(this.#layout.holders));
    const idsOf = (suffix: string): string[] =>
      [...names].filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length));
    // Remove suspicions of holders that are dead or closed: they have no meaning any more.
    for (const id of idsOf(".suspect").filter((each) => isId(each) && !names.has(`${each}.json`)))
      await unlinkUnlessForeign(disk, this.#layout.suspicion(id));
    const kept = new Set([own, ...declared].map(({ id }) => id));
    const dead = idsOf(".dead").filter((id) => isId(id) && !kept.has(id));
    const forgotten = new Set(dead.slice(0, deathsPerSweep));
    for (const id of forgotten) await this.forget(id);
    for (const id of new Set([...(await disk.list(this.#layout.temps)), ...idsOf(".beat")])) {
      // Decide by files that exist, never by missing ones: a holder whose record is not listed yet
      // must not lose its temp files.
      if (!isId(id) || names.has(`${id}.json`) || id === own.id || forgotten.has(id)) continue;
      if (!names.has(`${id}.dead`) && !(await this.#isOld(staging, id))) continue;
      await this.#removeTraces(id);
    }
  }

  /**
   * Removes all that is left of a holder that was declared dead earlier, the death record last. A
   * holder that was judged dead but continues, because its clocks stood still, thus finds either
   * the record or its directory gone.
   */
  async forget(id: string): Promise<void> {
    if (await this.#removeTraces(id)) await unlinkUnlessForeign(this.#ports.disk, this.#layout.deathRecord(id));
  }

  /** False if something of the holder cannot be removed now. */
  async #removeTraces(id: string): Promise<boolean> {
    const isGone = await removeDirectory(this.#ports.disk, this.#layout.temp(id));
    await unlinkUnlessForeign(this.#ports.disk, this.#layout.beat(id));
    return isGone;
  }

  async #isOld(staging: Staging, id: string): Promise<boolean> {
    return await withServerClock(staging, async (clock) => {
      // In this order: a joining process makes its directory before its beat.
      const { disk } = this.#ports;
      const beat = await findUnlessLoop(disk, this.#layout.beat(id));
      const temp = await findUnlessLoop(disk, this.#layout.temp(id));
      const stamps = this.stampsOf(temp, beat).map(({ mtimeMs }) => mtimeMs);
      return stamps.length > 0 && (await clock.ageMsOf(Math.max(...stamps))) > unjoinedMsMax;
    });
  }

  /**
   * Returns the stamps that show when a process began to join. An empty beat is excluded: on NFS a
   * file that is being created may look decades old. Its creator made a directory first. Without a
   * directory, an observer of a holder that was just leaving made the beat.
   */
  stampsOf(temp: FileStat | undefined, beat: FileStat | undefined): FileStat[] {
    const isBeingMade = beat?.size === 0 && temp !== undefined;
    return [temp, isBeingMade ? undefined : beat].filter((stat) => stat !== undefined);
  }
}

/** Another program made a symbolic link to itself; it must not stop a sweep. */
async function findUnlessLoop(disk: Disk, path: string): Promise<FileStat | undefined> {
  try {
    return await disk.findStat(path);
  } catch (error) {
    if (hasErrno(error, "ELOOP")) return undefined;
    throw error;
  }
}
