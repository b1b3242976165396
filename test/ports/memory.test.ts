import { createMemoryDisk } from "../../src/ports/memory/disk.ts";
import { describeDiskContract } from "./disk-contract.ts";

describeDiskContract("memory", async () => {
  const disk = createMemoryDisk(() => 1_000);
  await disk.mkdir("/root");
  return { disk, root: "/root" };
});
describeDiskContract("memory, at its root", async () => ({ disk: createMemoryDisk(() => 1_000), root: "/" }));
