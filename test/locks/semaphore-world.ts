// Semaphores of several simulated processes on one disk, whose time passes only by hand.
import type { SemaphoreOptions } from "../../src/locks/semaphore/options.ts";
import { InProcessLocks } from "../../src/locks/semaphore/in-process.ts";
import { PortsSemaphore } from "../../src/locks/semaphore/semaphore.ts";
import type { Host } from "../../src/ports/host.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { World, type WorldOptions } from "../sites/world.ts";

export const lockPath = "/shared/job.lock";

export class SemaphoreWorld extends World {
  /** Processes that have ended, by pid and start. */
  readonly #gone = new Set<string>();

  static async make(options: WorldOptions = {}): Promise<SemaphoreWorld> {
    const world = new SemaphoreWorld(options);
    await world.ports("setup").disk.mkdir("/shared");
    return world;
  }

  /**
   * The semaphore of one process; each call makes another one, as if the program were started anew,
   * with the same pid and start.
   */
  semaphore(
    process: string,
    options: SemaphoreOptions = {},
    {
      host = {},
      machine,
      ...others
    }: { readonly host?: Partial<Host>; readonly machine?: string } & Partial<Pick<Ports, "watch" | "disk">> = {},
  ): PortsSemaphore {
    const base = this.ports(process, machine);
    const processState: Host["processState"] = (pid, startMark) =>
      this.#gone.has(`${pid}:${startMark}`) ? "dead" : "alive";
    const ports = { ...base, ...others, host: { ...base.host, processState, ...host } };
    return new PortsSemaphore({ openPorts: async () => ports, inProcess: new InProcessLocks() }, lockPath, options);
  }

  /** From now on every process sees that this one has ended. */
  end(process: string): void {
    const { pid, startMark } = this.ports(process).host;
    this.#gone.add(`${pid}:${startMark}`);
    this.kill(process);
  }

  async plant(text: string): Promise<void> {
    await this.ports("setup").disk.createFile(lockPath, Buffer.from(text), { sync: false });
  }

  text(): string | undefined {
    return this.tree("/shared")[lockPath];
  }

  nowSeconds(): number {
    return Math.floor(this.nowMs / 1000);
  }
}
