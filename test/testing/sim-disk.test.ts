import { describe, expect, it } from "vitest";
import { parkNever } from "../../src/testing/sim/call.ts";
import { createSimDisk } from "../../src/testing/sim/disk.ts";
import { Machine } from "../../src/testing/sim/machine.ts";
import { SimServer, type Quirks } from "../../src/testing/sim/server.ts";
import { describeDiskContract } from "../ports/disk-contract.ts";

function simDisk(quirks: Quirks = {}) {
  const server = new SimServer({
    profile: "weak",
    quirks,
    volume: { kind: "local", type: "simulated", mountOptions: [] },
    now: () => 1000,
  });
  return createSimDisk({ server, machine: new Machine("m"), process: "p", park: parkNever });
}
describeDiskContract("the simulated disk", async () => {
  const disk = simDisk();
  await disk.mkdir("/r");
  return { disk, root: "/r" };
});
describeDiskContract("the simulated disk, root", async () => {
  return { disk: simDisk(), root: "/" };
});
describeDiskContract("the simulated disk, caches", async () => {
  return { disk: simDisk({ staleListings: true, staleAbsence: true, directoryHandles: true }), root: "/" };
});
describeDiskContract("the simulated disk, late", async () => {
  return { disk: simDisk({ lateWrites: true, caseInsensitive: true }), root: "/" };
});
