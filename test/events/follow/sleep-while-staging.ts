// A process that sleeps past its lease in the middle of staging a record: others judge it dead, and sweep the directory it stages in.
import { parentOf, removeDirectory } from "../../../src/durable/publish/directory.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { withDisk } from "./log-world.ts";

const sleepMs = 60_000;

export class SleepWhileStaging {
  readonly #isMeant: (record: string) => boolean;
  #sleptMs = 0;
  #staged = 0;

  /** It sleeps once, at the first record that is meant. */
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
        } else if (path.includes("/temp/")) this.#sleptMs = 0; // Whoever stages has asked whether its life is over.
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
