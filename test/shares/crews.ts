// The crews of several parts that work at the same time, each on a folder of its own: what is done
// to a machine is done to all of them.
import type { Bed } from "./bed.ts";
import type { Workers } from "./faults.ts";
import type { Guest } from "./guest.ts";
import type { Script } from "./script.ts";
import type { WorkCrew } from "./work-crew.ts";

export class Crews implements Workers {
  readonly #crews: readonly WorkCrew[];

  constructor(crews: readonly WorkCrew[]) {
    this.#crews = crews;
  }

  get violations(): readonly string[] {
    return this.#crews.flatMap(({ part, violations }) => violations.map((text) => `${part}: ${text}`));
  }
  get failures(): readonly string[] {
    return this.#crews.flatMap(({ part, failures }) => failures.map((text) => `${part}: ${text}`));
  }
  get isOver(): boolean {
    return this.#crews.some(({ isOver }) => isOver);
  }
  get wins(): number {
    return this.#crews.reduce((sum, { wins }) => sum + wins, 0);
  }
  get summary(): string {
    return this.#crews.map(({ part, summary }) => `${part}: ${summary}`).join("; ");
  }

  scripts(guest: Guest): readonly Script<unknown>[] {
    return this.#crews.flatMap((crew) => crew.scripts(guest));
  }
  start(guest: Guest): void {
    for (const crew of this.#crews) crew.start(guest);
  }
  async bury(dead: Guest): Promise<void> {
    for (const crew of this.#crews) await crew.bury(dead);
  }
  startAll({ guests }: Bed): void {
    for (const guest of guests) this.start(guest);
  }

  /**
   * Which workers of these guests have not got on within `msMax` from now, and how long the last of
   * the others took.
   */
  async waitForWins(guests: readonly Guest[], msMax: number): Promise<{ tookSeconds: number; stuck: string[] }> {
    const all = await Promise.all(
      this.#crews.map(async (crew) => ({ part: crew.part, ...(await crew.waitForWins(guests, msMax)) })),
    );
    return {
      tookSeconds: Math.max(...all.map(({ tookSeconds }) => tookSeconds)),
      stuck: all.flatMap(({ part, stuck }) => stuck.map((name) => `${name} (${part})`)),
    };
  }

  async finish(): Promise<void> {
    await Promise.all(this.#crews.map((crew) => crew.finish()));
  }
  async kill(): Promise<void> {
    await Promise.all(this.#crews.map((crew) => crew.kill()));
  }
  async audit(): Promise<void> {
    for (const crew of this.#crews) await crew.audit();
  }
}
