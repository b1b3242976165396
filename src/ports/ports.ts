// Everything that Holdfast needs from outside, in one bundle. Each room gets it as an argument, so
// that a simulation can hand in another world.
import type { Clock } from "./clock.ts";
import type { Disk } from "./disk.ts";
import type { Heart } from "./heart.ts";
import type { Host } from "./host.ts";
import type { OsLock } from "./os-lock.ts";
import type { Random } from "./random.ts";
import type { Watch } from "./watch.ts";

export interface Ports {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly host: Host;
  readonly heart: Heart;
  readonly osLock: OsLock;
  readonly watch: Watch;
}
