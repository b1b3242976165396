// What is left of a demo that is killed: nothing that runs.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

const patience = { timeout: 30_000, interval: 5 };

// By the process table of Linux, which is a directory.
describe.runIf(process.platform === "linux")("no workstation outlives a demo that is killed", () => {
  test("as soon as it has started them, before they listen to it", async () => {
    const { demo, directory } = startDemo();
    await vi.waitFor(() => expect(findWorkstations(directory)).toHaveLength(3), patience);
    demo.kill("SIGKILL");
    await vi.waitFor(() => expect(findProcesses(directory)).toEqual([]), patience);
  });

  test("while one of them is paused", async () => {
    const { demo, directory } = startDemo();
    await vi.waitFor(() => expect(findWorkstations(directory).some(isPaused)).toBe(true), patience);
    demo.kill("SIGKILL");
    await vi.waitFor(() => expect(findProcesses(directory)).toEqual([]), patience);
  });
});

function startDemo(): { readonly demo: HoldfastProcess; readonly directory: string } {
  const directory = join(makeScratch(), "shop");
  onTestFinished(() => findProcesses(directory).forEach(({ pid }) => process.kill(pid, "SIGKILL")));
  const demo = new HoldfastProcess(["demo", "--workstations", "3", "--seconds", "600", "--dir", directory]);
  return { demo, directory };
}

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

function findWorkstations(directory: string): Found[] {
  return findProcesses(directory).filter(({ args }) => args.includes("--join"));
}

function isPaused({ pid }: Found): boolean {
  try {
    return /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It has ended.
    return false;
  }
}

function readArgs(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    // It has ended.
    return [];
  }
}
