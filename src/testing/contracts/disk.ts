// The contract of src/ports/disk.ts as checks that every disk must pass.
import { posix } from "node:path";
import { Contract, type ContractCheck } from "./contract.ts";
import { checkFiles } from "./disk-files.ts";
import { checkNames } from "./disk-names.ts";
import { bytesOf, textOf, type DiskSite, type DiskWorld } from "./disk-world.ts";

/** Returns the checks that every `Disk` must pass. `makeSite` is called for each check. */
export function diskContract(makeSite: () => Promise<DiskSite>): ContractCheck[] {
  const contract = new Contract<DiskWorld>(async (run) => {
    const site = await makeSite();
    const { disk, root } = site;
    try {
      await run({
        ...site,
        at: (...names) => posix.join(root, ...names),
        create: (path, text) => disk.createFile(path, bytesOf(text), { sync: false }),
        read: async (path) => textOf(await disk.readFile(path, 1000)),
      });
    } finally {
      await site.end?.();
    }
  });
  checkFiles(contract);
  checkNames(contract);
  return contract.checks;
}
