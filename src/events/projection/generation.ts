// One generation of a projection's documents: its directory, and how far it has come.
import { removeTree } from "../../durable/publish/directory.ts";
import { fileNameOf, findSlotNumber, slotName } from "../../format/name.ts";
import type { Disk } from "../../ports/disk.ts";
import { Checkpoints } from "../follow/checkpoints.ts";
import { followingOf, type Following } from "../follow/following.ts";
import type { LogAccess } from "../log/log-access.ts";

/** Where a projection lies, and what it hangs on. */
export class ProjectionFiles {
  readonly name: string;
  readonly access: LogAccess;
  readonly following: Following;
  readonly directory: string;
  readonly #lease: string;

  constructor(access: LogAccess, name: string) {
    this.name = name;
    this.access = access;
    this.following = followingOf(access);
    this.#lease = `projections/${fileNameOf(name)}`;
    this.directory = `${access.directory}/${this.#lease}`;
  }

  get disk(): Disk {
    return this.access.ports.disk;
  }

  directoryOf(number: number): string {
    return `${this.directory}/${slotName(number)}`;
  }

  /** Of the work on one generation. */
  leaseOf(number: number): string {
    return `${this.#lease}/${slotName(number)}`;
  }

  /** Removes what nobody is led to any more. Whoever still reads there finds out, and looks again. */
  async removeOlderThan(number: number): Promise<void> {
    for (const name of await this.disk.list(this.directory))
      if ((findSlotNumber(name) ?? Infinity) < number) await removeTree(this.disk, `${this.directory}/${name}`);
  }
}

export interface Generation {
  readonly number: number;
  readonly directory: string;
  readonly checkpoints: Checkpoints;
}

/**
 * Makes it if it is not there. One that was removed is made again by whoever comes late: it has not begun, so nobody takes it for the real one, and it goes with the
 * next removal.
 */
export async function openGeneration(place: ProjectionFiles, number: number): Promise<Generation> {
  const { access, following } = place;
  const directory = place.directoryOf(number);
  const { staging, ports, id } = access.ground;
  const checkpoints = await Checkpoints.open(staging, `${directory}/checkpoint`, {
    ground: id,
    bootId: ports.host.bootId,
    findChecksum: (position) => access.findChecksum(position),
    remembersCutOff: true,
    onSaved: () => following.progressed(),
  });
  return { number, directory, checkpoints };
}
