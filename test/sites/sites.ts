// The sites that every contract suite runs on: an empty directory on each kind of disk, and ports
// for as many processes as a test wants.
// To add a capability: build what its suite needs from `openPorts` (see event-logs.ts), and run the
// suite with `describe.each(sites)`. The share bed runs the suites on the real disk with TMPDIR on
// the share: add a line to test/shares/suites.ts.
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { realDisk } from "./names.ts";
import { makeScratch } from "./scratch.ts";
import { nfs, World, type WorldOptions } from "./world.ts";

export interface Site {
  /** Exists and is empty. */
  readonly directory: string;
  /**
   * The ports of another process; on the network mount, of another machine. Memory has one process:
   * always the same ports.
   */
  readonly openPorts: () => Promise<Ports>;
}

export const sites: readonly [name: string, make: () => Promise<Site>][] = [
  [realDisk, makeRealSite],
  ["the memory disk", makeMemorySite],
  ["the simulated disk", () => makeSimulatedSite()],
  ["the simulated network mount", makeNetworkSite],
];

export async function makeRealSite(): Promise<Site> {
  const directory = makeScratch();
  return { directory, openPorts: () => openNodePorts(directory) };
}

async function makeMemorySite(): Promise<Site> {
  const ports = createMemoryPorts(await openNodePorts(makeScratch()));
  await ports.disk.mkdir(simulatedDirectory);
  return { directory: simulatedDirectory, openPorts: async () => ports };
}

export async function makeNetworkSite(): Promise<Site> {
  return await makeSimulatedSite({ volume: nfs });
}

/** Its time passes as ours does, until the test ends. */
export async function makeSimulatedSite(options: WorldOptions = {}): Promise<Site> {
  const world = new World(options);
  letTimePass(world);
  await world.ports("maker").disk.mkdir(simulatedDirectory);
  const hasMachines = options.volume?.kind === "network";
  let count = 0;
  const openPorts = async (): Promise<Ports> => {
    count++;
    return world.ports(`process-${count}`, hasMachines ? `machine-${count}` : "machine");
  };
  return { directory: simulatedDirectory, openPorts };
}

const simulatedDirectory = "/site";

/** Lets the time of a simulated world pass until the test ends. */
export function letTimePass(world: World): void {
  let isOver = false;
  const passing = (async () => {
    while (!isOver) {
      await world.advance(5);
      // Time passes: in ours as in theirs.
      await sleep(1);
    }
  })();
  onTestFinished(async () => {
    // After the stores were closed, which takes simulated time, too.
    isOver = true;
    await passing;
  });
}
