// Remains: what the dead have left on a ground, and in which order it goes.
import { isId } from "../../format/id.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { removeDirectory, unlinkIfThere } from "../publish/directory.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import { renameOnce } from "../publish/publish.ts";
import { withProbe } from "./server-age.ts";
import type { Staging } from "../publish/staging.ts";

/** How many records of deaths one sweep takes away: whoever opens a ground does not wait for the deaths of years. */
const deathsPerSweep = 1000;
/** What somebody left who died while he was joining: he owned nothing, so age may decide. By the server's own stamps. */
const unjoinedMsMax = 3_600_000;

export class DeadHolderCleanup {
  protected readonly ports: Ports;
  protected readonly layout: GroundLayout;

  constructor(ports: Ports, layout: GroundLayout) {
    this.ports = ports;
    this.layout = layout;
  }

  /** Final, and known to all before anything of it is removed: its record becomes its death record. */
  async declareDead({ id }: HolderRecord): Promise<void> {
    // False: another process has declared it, or it has ended by itself.
    await renameOnce(this.ports.disk, this.layout.record(id), this.layout.deathRecord(id));
  }

  async bury(holder: HolderRecord): Promise<void> {
    await this.declareDead(holder);
    await this.#removeTraces(holder.id);
  }

  /**
   * All of those who were declared dead, and of those who died an hour ago while they joined. Of a death that was declared
   * before this sweep also its record. Never what is `own`.
   */
  async remove(staging: Staging, own: HolderRecord, declared: readonly HolderRecord[]): Promise<void> {
    const { disk } = this.ports;
    const names = new Set(await disk.list(this.layout.holders));
    const idsOf = (suffix: string): string[] =>
      [...names].filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length));
    // Of one who is dead or has closed: it says nothing any more.
    for (const id of idsOf(".suspect").filter((each) => isId(each) && !names.has(`${each}.json`)))
      await unlinkIfThere(disk, this.layout.suspicion(id));
    const kept = new Set([own, ...declared].map(({ id }) => id));
    const dead = idsOf(".dead").filter((id) => isId(id) && !kept.has(id));
    const forgotten = new Set(dead.slice(0, deathsPerSweep));
    for (const id of forgotten) await this.forget(id);
    for (const id of new Set([...(await disk.list(this.layout.temps)), ...idsOf(".beat")])) {
      // Only by what is there: a holder whose record is not listed yet must not lose its temp files.
      if (!isId(id) || names.has(`${id}.json`) || id === own.id || forgotten.has(id)) continue;
      if (!names.has(`${id}.dead`) && !(await this.#isOld(staging, id))) continue;
      await this.#removeTraces(id);
    }
  }

  /**
   * All that is left of a death that was declared before, and at last its record: nothing needs it any more. In this order: a
   * holder that was taken for dead and goes on, because its clocks stood still, finds the record, or its directory gone.
   */
  protected async forget(id: string): Promise<void> {
    if (await this.#removeTraces(id)) await unlinkIfThere(this.ports.disk, this.layout.deathRecord(id));
  }

  /** False when something of it cannot be removed now. */
  async #removeTraces(id: string): Promise<boolean> {
    const isGone = await removeDirectory(this.ports.disk, this.layout.temp(id));
    await unlinkIfThere(this.ports.disk, this.layout.beat(id));
    return isGone;
  }

  async #isOld(staging: Staging, id: string): Promise<boolean> {
    return await withProbe(staging, async (probe) => {
      // In this order: his directory is there before his beat.
      const { disk } = this.ports;
      const beat = await disk.findStat(this.layout.beat(id));
      const temp = await disk.findStat(this.layout.temp(id));
      const now = await disk.findStat(probe);
      const stamps = this.stampsOf(temp, beat).map(({ mtimeMs }) => mtimeMs);
      return now !== undefined && stamps.length > 0 && now.mtimeMs - Math.max(...stamps) > unjoinedMsMax;
    });
  }

  /**
   * What tells how long ago somebody began to join. A beat in which nothing is written yet does not: on NFS a file that is just being made may look decades old. But whoever makes
   * it has made his directory before: without one it is of nobody, made by a look at one who was just leaving.
   */
  protected stampsOf(temp: FileStat | undefined, beat: FileStat | undefined): FileStat[] {
    const isBeingMade = beat?.size === 0 && temp !== undefined;
    return [temp, isBeingMade ? undefined : beat].filter((stat) => stat !== undefined);
  }
}
