// The real world in one bundle.
import { patientDisk } from "../patient-disk.ts";
import type { Disk } from "../disk.ts";
import type { Ports } from "../ports.ts";
import { nodeClock } from "./clock.ts";
import { openNodeDisk } from "./disk/disk.ts";
import { createNodeHeart } from "./heart.ts";
import { openNodeHost, warn as warnNode } from "./host.ts";
import { directoryOf } from "./location.ts";
import { createNodeOsLock } from "./lock/os-lock.ts";
import { nodeRandom } from "./random.ts";
import { createNodeWatch } from "./watch.ts";

/**
 * The ports for `directory` (absolute) and what lies below it. It may be missing yet: then the
 * nearest directory above it decides what disk it is.
 */
export async function openNodePorts(directory: string): Promise<Ports> {
  const [disk, host] = await Promise.all([openNodeDisk(directory), openNodeHost()]);
  const watch = createNodeWatch(disk.volume);
  return {
    disk: patientDisk(disk, nodeClock),
    clock: nodeClock,
    random: nodeRandom,
    host,
    heart: createNodeHeart(disk.volume),
    osLock: createNodeOsLock(disk.volume, { clock: nodeClock, random: nodeRandom, watch }),
    watch,
  };
}

/** A folder of other programs: its path, absolute, and the disk that it is on. */
export async function openNodeFolder(directory: string | URL): Promise<{ readonly path: string; readonly disk: Disk }> {
  const path = directoryOf(directory);
  return { path, disk: patientDisk(await openNodeDisk(path), nodeClock) };
}

/** What a world in memory takes from this one. */
export const nodeMemoryBase: Pick<Ports, "clock" | "random"> & { readonly warn: (message: string) => void } = {
  clock: nodeClock,
  random: nodeRandom,
  warn: warnNode,
};
