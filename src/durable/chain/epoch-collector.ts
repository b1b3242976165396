// EpochCollector removes the directories of epochs in which no process can win a slot any more.
import type { Disk } from "../../ports/disk.ts";
import type { Chain } from "./chain.ts";
import { findEpochOfDirectory, removeEpochDirectory, type Epoch } from "./epoch.ts";

export class EpochCollector<T> {
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #epochs: Chain<Epoch<T>>;
  #collecting: Promise<void> | undefined;

  constructor(disk: Disk, directory: string, epochs: Chain<Epoch<T>>) {
    this.#disk = disk;
    this.#directory = directory;
    this.#epochs = epochs;
  }

  /** Returns how many epochs it removed. Any number of collectors may run at once. */
  async collect(): Promise<number> {
    const directories: { readonly name: string; readonly epoch: number }[] = [];
    let highest = 0;
    for (const name of await this.#disk.list(this.#directory)) {
      const epoch = findEpochOfDirectory(name);
      if (epoch !== undefined) directories.push({ name, epoch });
      highest = Math.max(highest, epoch ?? 0);
    }
    // Every named epoch has its directory, so the listing alone usually shows that there is nothing
    // to collect.
    if (!directories.some(({ epoch }) => isCollectable(epoch, highest))) return 0;
    const newest = (await this.#epochs.last())?.number ?? 0;
    let collected = 0;
    for (const { name, epoch } of directories)
      if (isCollectable(epoch, newest) && (await this.remove(`${this.#directory}/${name}`))) collected++;
    return collected;
  }

  collectInBackground(): void {
    this.#collecting ??= this.collect().then(
      () => (this.#collecting = undefined),
      // The next collector removes directories that this one could not remove.
      () => (this.#collecting = undefined),
    );
  }

  /** Resolves when nothing is being collected in the background. */
  async settled(): Promise<void> {
    await this.#collecting;
  }

  /** Returns false if it could not be removed now. */
  async remove(directory: string): Promise<boolean> {
    return await removeEpochDirectory(this.#disk, directory);
  }
}

/** Two later epochs are named permanently, so this stays true however long the collector sleeps. */
function isCollectable(epoch: number, newest: number): boolean {
  return epoch + 2 <= newest;
}
