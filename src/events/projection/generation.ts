// The files of a projection: its generations, each with its documents and how far they have come.
import { fileNameOf, slotName } from "../../format/name.ts";
import { Generations } from "../../part/generations.ts";
import type { Checkpoints } from "../../part/progress/checkpoints.ts";
import type { Disk } from "../../ports/disk.ts";
import { workOn, type LogWork } from "../follow/log-work.ts";
import type { LogAccess } from "../log/log-access.ts";

export interface Generation {
  readonly number: number;
  readonly directory: string;
  readonly checkpoints: Checkpoints;
}

export class ProjectionFiles {
  readonly name: string;
  readonly work: LogWork;
  readonly generations: Generations;
  readonly directory: string;
  readonly #lease: string;

  private constructor(name: string, work: LogWork, lease: string, directory: string, generations: Generations) {
    this.name = name;
    this.work = work;
    this.directory = directory;
    this.generations = generations;
    this.#lease = lease;
  }

  /** Makes the catalog of generations if there is none. INVALID_NAME. */
  static async open(access: LogAccess, name: string): Promise<ProjectionFiles> {
    const lease = `projections/${fileNameOf(name)}`;
    await access.opened();
    const { staging, ports } = access.ground;
    const directory = `${access.directory}/${lease}`;
    const generations = await Generations.open(staging, directory, ports.host.bootId);
    return new ProjectionFiles(name, workOn(access), lease, directory, generations);
  }

  get disk(): Disk {
    return this.work.access.ports.disk;
  }

  /** The name of the lease for the work on one generation. */
  leaseOf(number: number): string {
    return `${this.#lease}/${slotName(number)}`;
  }

  /**
   * Makes the generation if it is not there. A late process may so make one again that was removed.
   * That one has not begun, so no reader takes it for the real one, and the next removal takes it
   * away.
   */
  async openGeneration(number: number): Promise<Generation> {
    const directory = this.generations.directoryOf(number);
    const checkpoints = await this.work.openCheckpoints(`${directory}/checkpoint`, { remembersCutOff: true });
    return { number, directory, checkpoints };
  }
}
