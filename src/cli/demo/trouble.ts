// Kills and pauses of the demo: now and then, a workstation is killed and restarted, or paused for a while.
import { setTimeout as sleep } from "node:timers/promises";
import { canPause, type WorkstationProcess } from "./workstation-process.ts";

const everyMs = [100, 500] as const;
const pauseMs = [50, 1200] as const;
const killPart = 0.4;

export class FaultInjector {
  readonly #workstations: readonly WorkstationProcess[];
  readonly #maySuffer: (workstation: WorkstationProcess) => boolean;
  #kills = 0;
  #pauses = 0;

  constructor(workstations: readonly WorkstationProcess[], maySuffer: (workstation: WorkstationProcess) => boolean) {
    this.#workstations = workstations;
    this.#maySuffer = maySuffer;
  }

  get kills(): number {
    return this.#kills;
  }
  get pauses(): number {
    return this.#pauses;
  }

  /** Kills and pauses workstations until the signal aborts. Afterwards every workstation runs again. */
  async makeUntil(signal: AbortSignal): Promise<void> {
    const pauses = new Set<Promise<void>>();
    while (!signal.aborted) {
      await wait(between(everyMs), signal);
      const workstation = this.#workstations[Math.floor(Math.random() * this.#workstations.length)];
      if (signal.aborted || workstation === undefined) break;
      // Chooses only workstations that have done a piece of work since their start: otherwise, on a
      // slow machine, none would ever finish one.
      if (!workstation.isAtWork || workstation.isPaused || !this.#maySuffer(workstation)) continue;
      if (Math.random() < killPart || !canPause) await this.#kill(workstation);
      else {
        const pause = this.#pause(workstation, signal).finally(() => pauses.delete(pause));
        pauses.add(pause);
      }
    }
    await Promise.all(pauses);
  }

  async #kill(workstation: WorkstationProcess): Promise<void> {
    this.#kills++;
    await workstation.kill();
    workstation.start();
  }

  async #pause(workstation: WorkstationProcess, signal: AbortSignal): Promise<void> {
    this.#pauses++;
    workstation.pause();
    await wait(between(pauseMs), signal);
    workstation.resume();
  }
}

function between([min, max]: readonly [number, number]): number {
  return min + Math.random() * (max - min);
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  // The signal ended the sleep. The caller checks the signal.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
