// A simulated world without the explorer: ports for any number of machines on one disk, for tests that need no
// schedules.
import type { Ports } from "../../ports/ports.ts";
import type { Volume } from "../../ports/disk.ts";
import { parkNever, type Park } from "./call.ts";
import { Machine } from "./machine.ts";
import { SimOsLocks } from "./os-locks.ts";
import type { CrashProfile } from "./persistence.ts";
import { createSimPorts } from "./process.ts";
import { SimServer, type ServerQuirks } from "./server.ts";

/** What Windows does and Linux does not. `unshared` names the processes that behave like a virus scanner. */
export const windowsQuirks: ServerQuirks = {
  pendingDeletes: true,
  busyRenames: true,
  directoriesStay: true,
  filesYield: true,
};

/** Options of `createSimulation`. */
export interface SimulationOptions {
  /** The disks that a power cut may leave. Default `ext4-ordered`. */
  readonly profile?: CrashProfile;
  /** The promises that the file system does not keep. Default: none. */
  readonly quirks?: ServerQuirks;
  /** The mount that the disk reports. Default: a local one. */
  readonly volume?: Volume;
  /**
   * How calls are made. Default: at once, with the ordinary outcome; a sleep that has not ended
   * fails.
   *
   * @internal
   */
  readonly park?: Park;
}

/** A simulated world: machines and processes on one disk. */
export interface Simulation {
  /**
   * The file server.
   *
   * @internal
   */
  readonly server: SimServer;
  /** The true time in milliseconds. Set it to move the time. */
  nowMs: number;
  /** Returns the ports of a process on a machine (default "m1"). Both are created when they are first named. */
  ports(process: string, machine?: string): Ports;
}

/**
 * Creates a simulated world for tests with one order of steps. `explore` tries many orders.
 *
 * @example
 * ```ts
 * const simulation = createSimulation({ quirks: { staleListings: true } });
 * const ground = await Ground.open(simulation.ports("till"), "/ground");
 * ```
 */
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
