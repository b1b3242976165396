// What dead holders have left on a ground, and in which order it is removed.
import { isId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { removeDirectory, unlinkIfThere } from "../publish/directory.ts";
import { renameOnce } from "../publish/publish.ts";
import type { Staging } from "../publish/staging.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import { withServerClock } from "./server-age.ts";

/**
 * How many death records one sweep removes: a process that opens a ground does not wait for the
 * deaths of years.
 */
const deathsPerSweep = 1000;
/**
 * A process that died while it joined owned nothing, so age may decide, by the server's own stamps.
 */
const unjoinedMsMax = 3_600_000;

export class DeadHolderCleanup {
  protected readonly ports: Ports;
  protected readonly layout: GroundLayout;

  constructor(ports: Ports, layout: GroundLayout) {
    this.ports = ports;
    this.layout = layout;
  }

  /**
   * Final, and known to all processes before anything of the holder is removed: its record becomes
   * its death record.
   */
  async declareDead({ id }: HolderRecord): Promise<void> {
    // False: another process has declared it, or it has ended by itself.
    await renameOnce(this.ports.disk, this.layout.record(id), this.layout.deathRecord(id));
  }

  async declareDeadAndRemove(holder: HolderRecord): Promise<void> {
    await this.declareDead(holder);
    await this.#removeTraces(holder.id);
  }

  /** Of a holder that was declared dead or has ended: whether it can stage and publish nothing any more. */
  async settle(id: string): Promise<boolean> {
    // Its record may have been missed, because the client of a share remembered that it was not there.
    if (!(await this.#isGone(this.layout.record(id)))) return false;
    await this.#removeTraces(id);
    // By a look of its own: the same memory ends a removal before it has begun.
    return await this.#isGone(this.layout.temp(id));
  }

  async #isGone(path: string): Promise<boolean> {
    try {
      await this.ports.disk.look(path);
      return false;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return true;
      throw error;
    }
  }

  /**
   * Removes all files of holders that were declared dead, and of processes that died an hour ago
   * while they joined. The death record goes too, unless the death was `declared` by this very
   * sweep. Never touches what is `own`.
   */
  async sweep(staging: Staging, own: HolderRecord, declared: readonly HolderRecord[]): Promise<void> {
    const { disk } = this.ports;
    const names = new Set(await disk.list(this.layout.holders));
    const idsOf = (suffix: string): string[] =>
      [...names].filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length));
    // The suspicion of a holder that is dead or closed says nothing any more.
    for (const id of idsOf(".suspect").filter((each) => isId(each) && !names.has(`${each}.json`)))
      await unlinkIfThere(disk, this.layout.suspicion(id));
    const kept = new Set([own, ...declared].map(({ id }) => id));
    const dead = idsOf(".dead").filter((id) => isId(id) && !kept.has(id));
    const forgotten = new Set(dead.slice(0, deathsPerSweep));
    for (const id of forgotten) await this.forget(id);
    for (const id of new Set([...(await disk.list(this.layout.temps)), ...idsOf(".beat")])) {
      // By what is there, never by what is missing: a holder whose record is not listed yet must
      // not lose its temp files.
      if (!isId(id) || names.has(`${id}.json`) || id === own.id || forgotten.has(id)) continue;
      if (!names.has(`${id}.dead`) && !(await this.#isOld(staging, id))) continue;
      await this.#removeTraces(id);
    }
  }

  /**
   * Removes all that is left of a death that was declared before, and its record last. A holder
   * that was taken for dead and goes on, because its clocks stood still, so finds the record, or
   * its directory gone.
   */
  protected async forget(id: string): Promise<void> {
    if (await this.#removeTraces(id)) await unlinkIfThere(this.ports.disk, this.layout.deathRecord(id));
  }

  /** False when something of the holder cannot be removed now. */
  async #removeTraces(id: string): Promise<boolean> {
    const isGone = await removeDirectory(this.ports.disk, this.layout.temp(id));
    await unlinkIfThere(this.ports.disk, this.layout.beat(id));
    return isGone;
  }

  async #isOld(staging: Staging, id: string): Promise<boolean> {
    return await withServerClock(staging, async (clock) => {
      // In this order: a joining process makes its directory before its beat.
      const { disk } = this.ports;
      const beat = await disk.findStat(this.layout.beat(id));
      const temp = await disk.findStat(this.layout.temp(id));
      const stamps = this.stampsOf(temp, beat).map(({ mtimeMs }) => mtimeMs);
      return stamps.length > 0 && (await clock.ageMsOf(Math.max(...stamps))) > unjoinedMsMax;
    });
  }

  /**
   * What tells how long ago a process began to join. An empty beat does not: on NFS a file that is
   * just being made may look decades old. But its maker has made a directory before. Without one,
   * the beat was made by an observer of a holder that was just leaving.
   */
  protected stampsOf(temp: FileStat | undefined, beat: FileStat | undefined): FileStat[] {
    const isBeingMade = beat?.size === 0 && temp !== undefined;
    return [temp, isBeingMade ? undefined : beat].filter((stat) => stat !== undefined);
  }
}
