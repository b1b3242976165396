// The files of a projection: its generations, each with its documents and checkpoint.
import { holdfastError } from "../../errors.ts";
import { fileNameOf, slotName } from "../../format/name.ts";
import type { GenerationEntry, Generations } from "../../part/generations.ts";
import type { Checkpoints } from "../../part/progress/checkpoints.ts";
import { workOn, type LogWork } from "../follow/log-work.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { Documents } from "./documents.ts";

export interface Generation {
  readonly number: number;
  readonly documents: Documents;
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

  /** Creates the catalog of generations if there is none. Throws INVALID_NAME. */
  static async open(access: LogAccess, name: string): Promise<ProjectionFiles> {
    const lease = `projections/${fileNameOf(name)}`;
    await access.opened();
    const generations = await access.derived.openGenerations(lease);
    return new ProjectionFiles(name, workOn(access), lease, `${access.directory}/${lease}`, generations);
  }

  /**
   * Throws NEWER_FORMAT for documents of a newer version of the definition. `effect` says what that means for the
   * documents of this version.
   */
  mustNotBeNewer(entry: GenerationEntry | undefined, version: number, effect: string): void {
    if (entry === undefined || entry.version <= version) return;
    const path = this.directory;
    const writtenBy = `version ${entry.version} of the projection`;
    const message = `${path}: ${writtenBy} has taken over, and this program has version ${version}, whose documents ${effect}. Upgrade this program.`;
    throw holdfastError("NEWER_FORMAT", message, { path, writtenBy });
  }

  /** The name of the lease for the work on one generation. */
  leaseOf(number: number): string {
    return `${this.#lease}/${slotName(number)}`;
  }

  /**
   * Creates the generation if it does not exist. A late process may thus recreate one that was removed. Readers
   * ignore it because it has not begun, and the next removal deletes it.
   */
  async openGeneration(number: number): Promise<Generation> {
    const path = this.generations.directoryOf(number);
    const checkpoints = await this.work.openCheckpoints(`${path}/checkpoint`, { remembersCutOff: true });
    return { number, documents: this.work.access.derived.documentsOf(path), checkpoints };
  }
}
