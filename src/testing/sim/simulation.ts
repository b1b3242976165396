// A simulated world without the explorer: ports of as many machines as wanted on one disk, for
// tests that need no schedules.
import type { Ports } from "../../ports/ports.ts";
import type { Volume } from "../../ports/disk.ts";
import { parkNever, type Park } from "./call.ts";
import { Machine } from "./machine.ts";
import { SimOsLocks } from "./os-locks.ts";
import type { Profile } from "./persistence.ts";
import { createSimPorts } from "./process.ts";
import { SimServer, type Quirks } from "./server.ts";

export interface SimulationOptions {
  readonly profile?: Profile;
  readonly quirks?: Quirks;
  readonly volume?: Volume;
  /**
   * How calls are made. Default: at once, with the ordinary outcome; a sleep that is not over yet
   * fails.
   */
  readonly park?: Park;
}

export interface Simulation {
  readonly server: SimServer;
  /** The true time; to be moved by hand. */
  nowMs: number;
  /** The ports of a process on a machine; both are made when they are named first. */
  ports(process: string, machine?: string): Ports;
}

export function createSimulation(options: SimulationOptions = {}): Simulation {
  const { profile = "ext4-ordered", quirks = {}, park = parkNever } = options;
  const volume = options.volume ?? { kind: "local", type: "simulated", mountOptions: [] };
  const machines = new Map<string, Machine>();
  const osLocks = new SimOsLocks(quirks.osLocks);
  const time = { nowMs: 1_000_000 };
  const server = new SimServer({ profile, quirks, volume, now: () => time.nowMs });
  return {
    server,
    get nowMs() {
      return time.nowMs;
    },
    set nowMs(ms) {
      time.nowMs = ms;
    },
    ports: (name, machineName = "m1") => {
      const machine = machines.get(machineName) ?? new Machine(machineName);
      machines.set(machineName, machine);
      return createSimPorts({
        name,
        machine,
        server,
        osLocks,
        park,
        now: () => time.nowMs,
        observed: () => undefined,
        pid: 100 + machines.size,
        processState: () => "alive",
        beatsMax: 0,
      });
    },
  };
}
