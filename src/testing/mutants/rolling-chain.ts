// Known-wrong variants of the rolling chain: each leaves out one of the steps that its proof needs.
import { unlinkIfThere } from "../../durable/directory.ts";
import { RollingChain } from "../../durable/rolling-chain.ts";

/** C4n: believes a link without asking whether the epoch is still open. */
export class ChainWithoutCheck<T> extends RollingChain<T> {
  protected override async isOpen(): Promise<boolean> {
    return true;
  }
}

/** C4m: deletes the slots of an old epoch before its `open` file. */
export class ChainDeletingSlotsFirst<T> extends RollingChain<T> {
  protected override async collectDirectory(directory: string): Promise<boolean> {
    const { disk } = this.staging;
    const names = await disk.list(directory);
    for (const name of names) if (name !== "open") await unlinkIfThere(disk, `${directory}/${name}`);
    return await super.collectDirectory(directory);
  }
}
