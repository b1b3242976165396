// Semaphores between real processes: all after one stale lock, and in containers of their own. Longer
// runs, and those with kills and stops, are in semaphore-processes.deep.ts.
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { moduleUrl, race } from "./semaphore-race.ts";

test("a planted stale lock that eight processes race for has one holder in each of 50 rounds", async () => {
  expect(await race(50, "")).toEqual({ 1: 50 });
});

/** A pid namespace of its own, as a container has one. */
const contain = ["unshare", "-pf", "--mount-proc", "--kill-child", process.execPath] as const;
const canContain = spawnSync(contain[0], [...contain.slice(1), "-e", "0"]).status === 0;

/** Says what it got, and stays. */
const contained = `
import { Semaphore } from ${moduleUrl("src/locks/index.ts")};
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
