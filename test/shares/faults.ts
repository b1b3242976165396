// What can happen to one of several machines that share a folder, and to the server.
import { setTimeout as sleep } from "node:timers/promises";
import type { Bed } from "./bed.ts";
import type { Guest } from "./guest.ts";
import type { Script } from "./script.ts";

/** The workers in the guests, as far as a fault is concerned. */
export interface Workers {
  scripts(guest: Guest): readonly Script<unknown>[];
  start(guest: Guest): void;
  /** Removes what only a person may remove, knowing that this machine is dead. */
  bury(dead: Guest): Promise<void>;
}

export interface Fault {
  readonly name: string;
  /** Whether the other machines must get on while it lasts. */
  readonly sparesOthers: boolean;
  /** Does it to `victim`; resolves when it is over and mended. */
  readonly run: (victim: Guest, workers: Workers) => Promise<void>;
}

/**
 * `leaseMs`: of the workers. What is cut off stays so for longer than this lease and the server's.
 */
export function faultsOf(bed: Bed, leaseMs: number): readonly Fault[] {
  const pastLeaseMs = leaseMs * 1.5;
  const pastEveryLeaseMs = Math.max(leaseMs, bed.server.leaseMs) + 5000;
  const all: readonly Fault[] = [
    {
      name: "killed",
      sparesOthers: true,
      async run(victim, workers) {
        await victim.kill();
        await sleep(2000);
        await workers.bury(victim);
        await victim.start();
        workers.start(victim);
      },
    },
    {
      name: "paused",
      sparesOthers: true,
      async run(victim) {
        victim.pause();
        await sleep(pastLeaseMs);
        victim.resume();
      },
    },
    {
      name: "processes stopped on",
      sparesOthers: true,
      async run(victim, workers) {
        const scripts = workers.scripts(victim);
        for (const script of scripts) script.stop();
        await sleep(pastLeaseMs);
        for (const script of scripts) script.continue();
      },
    },
    {
      name: "cut off",
      sparesOthers: true,
      async run(victim) {
        await victim.cut();
        await sleep(pastEveryLeaseMs);
        await victim.heal();
      },
    },
    {
      name: "10 % of packets lost by",
      sparesOthers: true,
      async run(victim) {
        await victim.lose(0.1);
        await sleep(10_000);
        await victim.heal();
      },
    },
    { name: "server restarted beside", sparesOthers: false, run: async () => await bed.server.restart(1000) },
  ];
  return all.filter(({ name }) => name.includes(bed.fault));
}
