// How a test waits for what happens elsewhere: by looking until it has happened, never by a guess of how long that takes.
import { setTimeout as sleep } from "node:timers/promises";
import type { Ports } from "../src/ports/ports.ts";

const lookEveryMs = 2;

/** Without a limit of its own: the test has one. */
export async function until(hasHappened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await hasHappened())) await sleep(lookEveryMs);
}

/** Lets in whatever is ready: one turn of the event loop. */
export async function nextTurn(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Counts the waits that have begun and not ended: each one that is limited in time has an alarm. */
export class WaitCounter {
  #count = 0;

  get count(): number {
    return this.#count;
  }

  on<P extends Pick<Ports, "clock">>(ports: P): P {
    const { clock } = ports;
    const alarm: Ports["clock"]["alarm"] = (ms, ring) => {
      let isOver = false;
      const end = (): void => {
        if (!isOver) this.#count--;
        isOver = true;
      };
      this.#count++;
      const stop = clock.alarm(ms, () => {
        end();
        ring();
      });
      return () => {
        end();
        stop();
      };
    };
    return { ...ports, clock: { ...clock, alarm } };
  }
}
