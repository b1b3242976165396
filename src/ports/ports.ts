// Everything that Holdfast needs from outside, in one bundle. Each room receives it as an argument,
// so that a simulation can pass another world.
import type { Clock } from "./clock.ts";
import type { Disk } from "./disk.ts";
import type { Hasher } from "./hasher.ts";
import type { Heart } from "./heart.ts";
import type { Host } from "./host.ts";
import type { OsLock } from "./os-lock.ts";
import type { Random } from "./random.ts";
import type { Threads } from "./threads.ts";
import type { Watch } from "./watch.ts";

/**
 * Everything that Holdfast needs from outside: disk, clock, randomness, process. A simulation
 * passes its own.
 */
export interface Ports {
  /** The file system. */
  readonly disk: Disk;
  /** Time and timers. */
  readonly clock: Clock;
  /** Randomness. */
  readonly random: Random;
  /** The identity of this process and its machine. */
  readonly host: Host;
  /** The heartbeat of this process. */
  readonly heart: Heart;
  /** Locks of the operating system. */
  readonly osLock: OsLock;
  /** Hints about changes in a directory. */
  readonly watch: Watch;
  /** Hashes large bodies in other threads. Absent if everything runs on one thread. */
  readonly hasher?: Hasher;
  /** Runs background work in other threads. Absent if everything runs on one thread. */
  readonly threads?: Threads;
}
