// STAND-IN
import type { Disk } from "../../ports/disk.ts";
import { syncNames } from "./directory.ts";
export class SharedSync {
  readonly #disk: Disk;
  constructor(disk: Disk) { this.#disk = disk; }
  async sync(directory: string): Promise<void> { await syncNames(this.#disk, directory); }
}
