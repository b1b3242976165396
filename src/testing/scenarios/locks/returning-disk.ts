// Scenarios of a disk that goes away under its lock table and comes back in the same boot, without
// what was not on it yet, and as another device.
import type { Disk } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Scenario } from "../../explorer/scenario.ts";
import { lockScenario, openLocks, shortLeaseMs, type LockScenarioOptions } from "./lock-actors.ts";

export function returningDiskScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return (["known", "unknown"] as const).map((holder) =>
    lockScenario({
      name: `locks: the disk comes back in the same boot, its holder ${holder} to the process table`,
      about:
        "A slot is torn, and the heartbeat is not the file that was locked. No process is stopped by that for good.",
      powerCuts: true,
      isPermanent: () => false,
      actors: {
        ada: actor({
          prepare: async ({ ports }) => await openLocks(inOneBoot(ports), { ...options, leaseMs: shortLeaseMs }),
          run: async (_, locks) => {
            await locks.acquire("till");
            await (await locks.acquire("drawer")).release();
          },
        }),
      },
      audit: async (ports) => {
        const locks = await openLocks(withTime(inOneBoot(ports, holder === "unknown")), {
          ...options,
          diskOf: asAnotherDevice,
        });
        mustHold((await locks.tryAcquire("shelf")) !== undefined, "a lock that no process held cannot be had");
      },
    }),
  );
}

function inOneBoot(ports: Ports, isElsewhere = false): Ports {
  const processSpace = isElsewhere ? "another container" : "this container";
  return { ...ports, host: { ...ports.host, bootId: "one boot", processSpace } };
}

/** The clock goes on while the auditor sleeps. */
function withTime(ports: Ports): Ports {
  let sleptMs = 0;
  const { clock } = ports;
  return {
    ...ports,
    clock: {
      ...clock,
      monotonicMs: () => clock.monotonicMs() + sleptMs,
      wallMs: () => clock.wallMs() + sleptMs,
      sleep: async (ms, options) => {
        if (options?.background) await clock.sleep(ms, options);
        else sleptMs += ms;
      },
    },
  };
}

function asAnotherDevice(disk: Disk): Disk {
  const stat: Disk["stat"] = async (path) => {
    const found = await disk.stat(path);
    return { ...found, identity: `${found.identity} of another device` };
  };
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "stat") return stat;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
