// Chaos: at random moments some child is killed and restarted, or stopped and continued, as a seed decides.
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "./chance.ts";
import { canStop, type Child } from "./child.ts";

export interface ChaosOptions {
  readonly chance: Chance;
  /** The longest time between two blows. */
  readonly everyMsMax: number;
  /** The fraction of blows that kill. The others stop a child. */
  readonly killPart: number;
  /** The possible lengths of a stop. A range that is listed more often is chosen more often. */
  readonly stopMs: readonly (readonly [min: number, max: number])[];
  /**
   * Returns true if a child is a good target for a kill right now. If there is one, every other kill hits such a
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
  /** Always 0 on Windows, where no process can be stopped. */
  get stops(): number {
    return this.#stops;
  }

  begin(): void {
    this.#running = this.#rage();
  }

  /** Resolves when every child is running again. */
  async end(): Promise<void> {
    this.#over.abort();
    await this.#running;
    for (const child of this.#children) child.cont();
  }

  /**
   * Stops a child now that has reached the moment at which a sleep does most harm. Chance alone seldom hits that
   * moment on a busy machine.
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
      // A child that ended on its own is a finding, and is not restarted, so that it is noticed.
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

  /** Stops at most half of the children at a time, so that the others change things under the sleepers. */
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
    // The child may have been killed meanwhile, and its successor may be stopped by another blow.
    if (child.starts === starts) child.cont();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // The end of the chaos cuts the sleep short: the caller checks the signal.
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
