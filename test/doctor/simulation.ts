// A simulated file server with a few machines, whose calls are carried out one by one in an order
// that a seed decides.
import { errnoOf } from "../../src/ports/disk-error.ts";
import type { Disk, Volume } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import type { SimCall, CallOutcome } from "../../src/testing/sim/call.ts";
import { Machine } from "../../src/testing/sim/machine.ts";
import { SimOsLocks } from "../../src/testing/sim/os-locks.ts";
import { createSimPorts } from "../../src/testing/sim/process.ts";
import { SimServer, type ServerQuirks } from "../../src/testing/sim/server.ts";

export interface SimulationOptions {
  readonly quirks?: ServerQuirks | undefined;
  readonly volume?: Volume | undefined;
  readonly seed?: number;
  /** Which of the possible outcomes of a call happens; undefined for the ordinary one. */
  readonly choose?: (
    process: string,
    call: SimCall<unknown>,
    outcomes: readonly CallOutcome<unknown>[],
  ) => CallOutcome<unknown> | undefined;
}

interface Parked {
  readonly process: string;
  readonly call: SimCall<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The folder that is examined, and a foreign file in it. */
export const folder = "/shop";
const foreign = `${folder}/till-3.csv`;

const callMs = 0.25;

export class Simulation {
  readonly server: SimServer;
  nowMs = 1_700_000_000_123;
  readonly #options: SimulationOptions;
  readonly #osLocks: SimOsLocks;
  readonly #machines = new Map<string, Machine>();
  readonly #dead = new Set<string>();
  #parked: Parked[] = [];
  #isPumping = false;
  #random: number;

  constructor(options: SimulationOptions = {}) {
    this.#options = options;
    this.#random = options.seed ?? 1;
    const { quirks = {}, volume = { kind: "local", type: "ext4", mountOptions: ["rw", "relatime"] } } = options;
    this.server = new SimServer({ profile: "ext4-ordered", quirks, volume, now: () => this.nowMs });
    this.#osLocks = new SimOsLocks(quirks.osLocks);
  }

  machine(name: string): Machine {
    const machine = this.#machines.get(name) ?? new Machine(name);
    this.#machines.set(name, machine);
    return machine;
  }

  ports(process: string, machine: string = `machine-of-${process}`): Ports {
    return createSimPorts({
      name: process,
      machine: this.machine(machine),
      server: this.server,
      osLocks: this.#osLocks,
      now: () => this.nowMs,
      observed: () => undefined,
      pid: 100,
      beatsMax: 0,
      processState: () => "alive",
      park: (call) => this.#park(process, call),
    });
  }

  /** Makes the folder, with a file in it that no examination may touch. */
  async furnish(): Promise<void> {
    const { disk } = this.ports("furnisher");
    await disk.mkdir(folder);
    await disk.createFile(foreign, Buffer.from("not yours"), { sync: true });
  }

  /** Every path in the folder, with its content. */
  remains(): Record<string, string> {
    const found: Record<string, string> = {};
    const walk = (path: string): void => {
      const node = this.server.tree.node(this.server.tree.entry(path, "look"), "look");
      if (node.kind === "file") found[path] = Buffer.from(node.bytes).toString();
      else for (const name of node.entries.keys()) walk(`${path}/${name}`);
      if (node.kind === "directory" && node.entries.size === 0) found[path] = "(empty directory)";
    };
    walk(folder);
    return found;
  }

  /** Killed: none of its calls ever comes back. */
  kill(process: string): void {
    this.#dead.add(process);
    this.#parked = this.#parked.filter((parked) => parked.process !== process);
    this.#osLocks.freeAllOf(process);
  }

  #park<T>(process: string, call: SimCall<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#dead.has(process)) return;
      this.#parked.push({ process, call, resolve: resolve as (value: unknown) => void, reject });
      if (this.#isPumping) return;
      this.#isPumping = true;
      setImmediate(() => void this.#pump());
    });
  }

  async #pump(): Promise<void> {
    while (this.#parked.length > 0) {
      const ready = this.#parked.filter(({ call }) => call.outcomes().length > 0);
      if (ready.length === 0) this.#passTime();
      else this.#carryOut(ready[this.#draw(ready.length)]!);
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isPumping = false;
  }

  #carryOut(parked: Parked): void {
    const { process, call, resolve, reject } = parked;
    this.#parked = this.#parked.filter((other) => other !== parked);
    const outcomes = call.outcomes();
    const outcome = this.#options.choose?.(process, call, outcomes) ?? outcomes[0];
    this.nowMs += callMs;
    try {
      resolve(outcome?.run());
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      reject(error);
    }
  }

  #passTime(): void {
    const dueMs = this.#parked.flatMap(({ call }) => call.dueMs ?? []);
    if (dueMs.length === 0) throw new Error("every process would wait for ever");
    this.nowMs = Math.min(...dueMs);
  }

  #draw(count: number): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) | 0;
    return (this.#random >>> 8) % count;
  }
}

/** What `furnish` made, and nothing else. */
export const untouched: Readonly<Record<string, string>> = { [foreign]: "not yours" };

/** The same ports with a disk on which some operations are different. */
export function withDisk(ports: Ports, change: (disk: Disk) => Partial<Disk>): Ports {
  const changes = change(ports.disk);
  const disk = new Proxy(ports.disk, {
    get(target, key): unknown {
      const value: unknown = Reflect.get(key in changes ? changes : target, key);
      return typeof value === "function" ? value.bind(key in changes ? changes : target) : value;
    },
  });
  return { ...ports, disk };
}
