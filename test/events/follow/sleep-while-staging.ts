// A process that sleeps past its lease while it stages a record: other processes declare it dead,
// and sweep its temp directory.
import { parentOf, removeDirectory } from "../../../src/durable/publish/directory.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { withDisk } from "./log-world.ts";

const sleepMs = 60_000;

export class SleepWhileStaging {
  readonly #isMeant: (record: string) => boolean;
  #sleptMs = 0;
  #staged = 0;

  /** It sleeps once, at the first such record. */
  constructor(isMeant: (record: string) => boolean) {
    this.#isMeant = isMeant;
  }

  /** How often such a record was staged. */
  get staged(): number {
    return this.#staged;
  }

  tamper(ports: Ports): Ports {
    const { clock, disk } = ports;
    const sleeping = withDisk(ports, {
      createFile: async (path, bytes, options) => {
        if (this.#isMeant(Buffer.from(bytes).toString()) && ++this.#staged === 1) {
          this.#sleptMs = sleepMs;
          await removeDirectory(disk, parentOf(path));
        } else if (path.includes("/temp/")) this.#sleptMs = 0; // The process has checked whether its session is over.
        await disk.createFile(path, bytes, options);
      },
    });
    return {
      ...sleeping,
      clock: {
        wallMs: () => clock.wallMs() + this.#sleptMs,
        monotonicMs: () => clock.monotonicMs(),
        sleep: (ms, options) => clock.sleep(ms, options),
        alarm: (ms, ring) => clock.alarm(ms, ring),
      },
    };
  }
}
