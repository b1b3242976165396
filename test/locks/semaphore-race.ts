// Eight processes that race for a planted stale lock, round after round, with pauses in the middle
// of it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, vi } from "vitest";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { Crew } from "../../harness/processes/crew.ts";
import { makeScratch } from "../sites/scratch.ts";

const processes = 8;

interface Said {
  readonly round: number;
  readonly held: boolean;
}

export const moduleUrl = (path: string): string =>
  JSON.stringify(pathToFileURL(compiledModule(new URL(`../../${path}`, import.meta.url))).href);

/** In each round all begin at the same moment, and a process that gets the lock keeps it. */
const racer = `
import { setTimeout as sleep } from "node:timers/promises";
import { SemaphoreProtocol } from ${moduleUrl("src/locks/semaphore/protocol.ts")};
import { InProcessLocks } from ${moduleUrl("src/locks/semaphore/in-process.ts")};
import { PortsSemaphore } from ${moduleUrl("src/locks/semaphore/semaphore.ts")};
import { openNodePorts } from ${moduleUrl("src/ports/node/ports.ts")};
import * as mutants from ${moduleUrl("harness/mutants/locks/semaphore.ts")};
import { Chance } from ${moduleUrl("harness/processes/chance.ts")};
import { finishSignal, report } from ${moduleUrl("harness/processes/child-side.ts")};
import { dawdlingDisk } from ${moduleUrl("harness/processes/dawdling-disk.ts")};

const { directory, rounds, startMs, everyMs, variant } = JSON.parse(process.argv[2]);
const finish = finishSignal();
const ports = await openNodePorts(directory);
const chance = new Chance(process.pid);
const slow = { ...ports, disk: dawdlingDisk(ports.disk, { chance, probability: 0.3, msMax: 8 }) };
const world = { openPorts: async () => slow, inProcess: new InProcessLocks(), Protocol: mutants[variant] ?? SemaphoreProtocol, watchMs: Infinity };
for (let round = 0; round < rounds; round++) {
  // Time passes: so that all of them begin at the same moment.
  await sleep(Math.max(0, startMs + round * everyMs - Date.now()));
  const semaphore = new PortsSemaphore(world, directory + "/" + round + "/job.lock", { fsync: false });
  const hold = await semaphore.tryAcquire();
  report({ round, held: hold !== undefined });
}
// Not before all are done: the lock of a process that has ended is stale.
while (!finish.aborted) await sleep(10);
process.exit(0);
`;

/** How many rounds had how many holders. */
export async function race(rounds: number, variant: string): Promise<Record<number, number>> {
  const directory = makeScratch();
  for (let round = 0; round < rounds; round++) {
    mkdirSync(join(directory, `${round}`));
    writeFileSync(join(directory, `${round}`, "job.lock"), "pid=4711\ntimestamp=1000000000\ntag=planted\n");
  }
  const module = join(directory, "racer.mjs");
  writeFileSync(module, racer);
  const everyMs = 30;
  const orders = JSON.stringify({ directory, rounds, startMs: Date.now() + 3000, everyMs, variant });
  const names = Array.from({ length: processes }, (_, index) => `p${index + 1}`);
  const crew = new Crew<Said>({ names, module, argsOf: () => [orders] });
  await crew.run(async () => {
    const isOver = (): boolean => crew.failures.length > 0 || crew.history.length === rounds * processes;
    await vi.waitFor(() => expect(isOver()).toBe(true), { timeout: 60_000, interval: 50 });
    expect(await crew.finish()).toEqual([]);
  });
  expect(crew.failures).toEqual([]);
  const holders = Array.from({ length: rounds }, () => 0);
  for (const { report } of crew.history) if (report.held) holders[report.round]!++;
  const counts: Record<number, number> = {};
  for (const count of holders) counts[count] = (counts[count] ?? 0) + 1;
  return counts;
}
