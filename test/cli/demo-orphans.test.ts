// What is left of a demo that is killed: nothing that runs.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { makeScratch } from "../ports/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

const patience = { timeout: 30_000, interval: 5 };

// By the process table of Linux, which is a directory.
test.runIf(process.platform === "linux")(
  "no workstation outlives a demo that is killed as soon as it has started them, before they listen to it",
  async () => {
    const directory = join(makeScratch(), "shop");
    const demo = new HoldfastProcess(["demo", "--workstations", "3", "--seconds", "600", "--dir", directory]);
    onTestFinished(() => findProcesses(directory).forEach(({ pid }) => process.kill(pid, "SIGKILL")));
    const isWorkstation = ({ args }: Found): boolean => args.includes("--join");
    await vi.waitFor(() => expect(findProcesses(directory).filter(isWorkstation)).toHaveLength(3), patience);
    demo.kill("SIGKILL");
    await demo.exited();
    await vi.waitFor(() => expect(findProcesses(directory)).toEqual([]), patience);
  },
  60_000,
);

interface Found {
  readonly pid: number;
  readonly args: readonly string[];
}

/** All who run with `arg`. */
function findProcesses(arg: string): Found[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: readArgs(name) }))
    .filter(({ args }) => args.includes(arg));
}

function readArgs(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    // It has ended.
    return [];
  }
}
