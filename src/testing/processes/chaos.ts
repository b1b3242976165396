// Chaos: at every moment some child is killed and started again, or stopped and continued, as a
// seed decides.
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "./chance.ts";
import { canStop, type Child } from "./child.ts";

export interface ChaosOptions {
  readonly chance: Chance;
  /** The longest time between two blows. */
  readonly everyMsMax: number;
  /** How many of the blows kill; the others stop. */
  readonly killPart: number;
  /** How long a stop lasts, each range as likely as it is often in the list. */
  readonly stopMs: readonly (readonly [min: number, max: number])[];
  /**
   * Whether a child is worth a kill right now: where there is one, every other kill hits such a
   * child. Default: all are equal.
   */
  readonly isInside?: ((child: Child) => boolean) | undefined;
}

export class Chaos {
  readonly #children: readonly Child[];
  readonly #options: ChaosOptions;
  readonly #over = new AbortController();
  #kills = 0;
  #stops = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(children: readonly Child[], options: ChaosOptions) {
    this.#children = children;
    this.#options = options;
  }

  get kills(): number {
    return this.#kills;
  }
  /** 0 on Windows, where nothing can be stopped. */
  get stops(): number {
    return this.#stops;
  }

  begin(): void {
    this.#running = this.#rage();
  }

  /** Resolves when every child runs again. */
  async end(): Promise<void> {
    this.#over.abort();
    await this.#running;
    for (const child of this.#children) child.cont();
  }

  /**
   * Stops a child now, which has come to where a sleep does most harm: chance alone seldom hits
   * that moment on a busy machine.
   */
  stopNow(child: Child, ms: number): void {
    if (!this.#over.signal.aborted && child.isRunning && this.#mayStop(child)) void this.#stopFor(child, ms);
  }

  async #rage(): Promise<void> {
    const { chance, everyMsMax, killPart } = this.#options;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await pause(chance.between(0, everyMsMax), signal);
      if (signal.aborted) return;
      const kills = chance.happens(killPart);
      const child = (kills ? this.#pickInside() : undefined) ?? chance.pick(this.#children);
      // One that ended by itself is a finding, and stays ended, so that it is seen.
      if (child === undefined || !child.isRunning) continue;
      if (kills) {
        this.#kills++;
        await child.kill();
        child.start();
      } else if (this.#mayStop(child)) void this.#stopFor(child, this.#someWhile());
    }
  }

  #pickInside(): Child | undefined {
    const { chance, isInside } = this.#options;
    return isInside !== undefined && chance.happens(0.5) ? chance.pick(this.#children.filter(isInside)) : undefined;
  }

  /** At most half of them at a time, so that the sleepers have something to miss. */
  #mayStop(child: Child): boolean {
    const stopped = this.#children.filter(({ isStopped }) => isStopped).length;
    return canStop && !child.isStopped && stopped < this.#children.length / 2;
  }

  #someWhile(): number {
    const { chance, stopMs } = this.#options;
    const [min, max] = chance.pick(stopMs) ?? [0, 0];
    return chance.between(min, max);
  }

  async #stopFor(child: Child, ms: number): Promise<void> {
    const { starts } = child;
    this.#stops++;
    child.stop();
    await pause(ms, this.#over.signal);
    // It may have been killed meanwhile, and its successor may be stopped on its own account.
    if (child.starts === starts) child.cont();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // Cut short when it is over: the caller looks.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
