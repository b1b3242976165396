// The real ports in one bundle.
import { patientDisk } from "../patient-disk.ts";
import type { Disk } from "../disk.ts";
import type { Ports } from "../ports.ts";
import { nodeClock } from "./clock.ts";
import { openNodeDisk } from "./disk/disk.ts";
import { nodeHasher } from "./hasher.ts";
import { createNodeHeart } from "./heart.ts";
import { openNodeHost, warn as warnNode } from "./host.ts";
import { createMemoryHost } from "../memory/host.ts";
import { createMemoryPorts } from "../memory/ports.ts";
import { directoryOf, isMemory } from "./location.ts";
import { mustRunOnNode } from "./lock/native-lock.ts";
import { createNodeOsLock } from "./lock/os-lock.ts";
import { nodeRandom } from "./random.ts";
import { nodeThreads } from "./threads.ts";
import { createNodeWatch } from "./watch.ts";

/**
 * Opens the ports for `directory` (absolute) and everything below it. It need not exist: then its
 * nearest existing ancestor decides which disk it is on. Throws UNSUPPORTED_DISK under Deno.
 */
export async function openNodePorts(directory: string): Promise<Ports> {
  mustRunOnNode(directory);
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
    hasher: nodeHasher,
    threads: nodeThreads,
  };
}

/** Opens a folder of other programs: its absolute path, and the disk that it is on. */
export async function openNodeFolder(directory: string | URL): Promise<{ readonly path: string; readonly disk: Disk }> {
  const path = directoryOf(directory);
  return { path, disk: patientDisk(await openNodeDisk(path), nodeClock) };
}

/** The location that a user gave, as an absolute path, and the ports for it. */
export interface OpenedLocation {
  readonly ports: Ports;
  readonly path: string;
}

/** `memory:` opens an empty world in memory, a new one with each call. Throws INVALID_PATH. */
export async function openLocation(location: string | URL): Promise<OpenedLocation> {
  if (isMemory(location)) return openMemory();
  const path = directoryOf(location);
  return { ports: await openNodePorts(path), path };
}

/** Opens an empty world in memory, with the real clock and randomness. */
export function openMemory(): OpenedLocation {
  const base = { clock: nodeClock, random: nodeRandom };
  return { ports: createMemoryPorts({ ...base, host: createMemoryHost(base, warnNode) }), path: "/memory" };
}
