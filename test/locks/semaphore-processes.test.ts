// Semaphores between real processes: killed, stopped, and all after one stale lock; and the proof
// that the tests would notice.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { canStop } from "../../src/testing/processes/child.ts";
import { compiledModule } from "../../src/testing/processes/compiled-module.ts";
import { Crew } from "../../src/testing/processes/crew.ts";
import { torture } from "../../src/testing/torture/torture.ts";
import { makeScratch } from "../sites/scratch.ts";

const processes = 8;

describe("a counter that eight processes read, change and write under one semaphore", () => {
  test("loses no update, though holders are killed inside and others stopped anywhere", async () => {
    const result = await torture({ part: "semaphore", seconds: 20, processes, seed: 5 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(50);
    // A process that is killed inside leaves a lock, which the next one takes over.
    expect(result.killsInside).toBeGreaterThan(0);
    if (canStop) expect(result.stops).toBeGreaterThan(30);
  });

  test("loses some when a refresh empties the lock file first", async () => {
    const result = await torture({ part: "semaphore", seconds: 20, processes, seed: 6, sabotage: true });
    expect(result.violations.join("\n")).toMatch(/won twice|is lost/);
  });
});

interface Said {
  readonly round: number;
  readonly held: boolean;
}

const moduleUrl = (path: string): string =>
  JSON.stringify(pathToFileURL(compiledModule(new URL(`../../src/${path}`, import.meta.url))).href);

/** In each round all begin at the same moment, and a process that gets the lock keeps it. */
const racer = `
import { setTimeout as sleep } from "node:timers/promises";
import { SemaphoreProtocol } from ${moduleUrl("locks/semaphore/protocol.ts")};
import { InProcessLocks } from ${moduleUrl("locks/semaphore/in-process.ts")};
import { PortsSemaphore } from ${moduleUrl("locks/semaphore/semaphore.ts")};
import { openNodePorts } from ${moduleUrl("ports/node/ports.ts")};
import * as mutants from ${moduleUrl("testing/mutants/locks/semaphore.ts")};
import { Chance } from ${moduleUrl("testing/processes/chance.ts")};
import { finishSignal, report } from ${moduleUrl("testing/processes/child-side.ts")};
import { dawdlingDisk } from ${moduleUrl("testing/processes/dawdling-disk.ts")};

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
async function race(rounds: number, variant: string): Promise<Record<number, number>> {
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

describe("a planted stale lock that eight processes race for, with pauses in the middle of it", () => {
  test("has one holder in each of 300 rounds", async () => {
    expect(await race(300, "")).toEqual({ 1: 300 });
  });

  test("has two in some rounds when it is taken over by unlink", async () => {
    const counts = await race(100, "TakeoverByUnlink");
    expect(Object.keys(counts).some((holders) => Number(holders) > 1)).toBe(true);
  });
});

/** A pid namespace of its own, as a container has one. */
const contain = ["unshare", "-pf", "--mount-proc", "--kill-child", process.execPath] as const;
const canContain = spawnSync(contain[0], [...contain.slice(1), "-e", "0"]).status === 0;

/** Says what it got, and stays. */
const contained = `
import { Semaphore } from ${moduleUrl("locks/index.ts")};
const semaphore = new Semaphore(process.argv[2]);
const hold = await semaphore.tryAcquire();
console.log(JSON.stringify({ pid: process.pid, held: hold !== undefined, ...(await semaphore.status()) }));
setInterval(() => {}, 1000);
`;

describe.runIf(canContain)("two containers, in each of which the process has pid 1", () => {
  test("exclude each other: neither takes the other for itself, nor for dead", async () => {
    const directory = makeScratch();
    const module = join(directory, "contained.mjs");
    writeFileSync(module, contained);
    const run = async (): Promise<unknown> => {
      const child = spawn(contain[0], [...contain.slice(1), module, join(directory, "job.lock")]);
      onTestFinished(() => void child.kill("SIGKILL"));
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
      await vi.waitFor(() => expect(output).toMatch(/\n$/), { timeout: 20_000, interval: 10 });
      return JSON.parse(output);
    };
    expect(await run()).toMatchObject({ pid: 1, held: true, mine: true, info: { pid: 1 } });
    expect(await run()).toMatchObject({ pid: 1, held: false, mine: false, stale: false, info: { pid: 1 } });
  });
});
