// A separate world in memory, with the real clock, randomness and host.
import type { Ports } from "../ports.ts";
import { createMemoryDisk } from "./disk.ts";
import { createMemoryHeart } from "./heart.ts";
import { createMemoryOsLock } from "./os-lock.ts";
import { createMemoryWatch } from "./watch.ts";

/**
 * Returns an empty disk with its locks, hints and heart. Each call makes a new one; nothing of it
 * outlives this process.
 */
export function createMemoryPorts(base: Pick<Ports, "clock" | "random" | "host">): Ports {
  const { clock, random, host } = base;
  const watch = createMemoryWatch(clock);
  const disk = createMemoryDisk(() => clock.wallMs(), watch.changed);
  return { disk, clock, random, host, heart: createMemoryHeart(clock), osLock: createMemoryOsLock(disk), watch };
}
