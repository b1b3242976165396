import { hostname } from "node:os";
import { beforeEach, afterEach, expect, test, vi } from "vitest";
import type { HolderInfo } from "../../index.ts";
import { Output, type OutputOptions } from "../output.ts";
import type { Run } from "../run.ts";
import { explain, type Blocking } from "./explained-wait.ts";

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 18, 12, 0, 0) }));
afterEach(() => void vi.useRealTimers());

function newRun(options: OutputOptions = {}): { readonly run: Run; readonly said: string[] } {
  const said: string[] = [];
  const pipes = { stdout: { write: () => true }, stderr: { write: (text: string) => void said.push(text) } };
  return {
    run: {
      output: new Output(pipes, options),
      pipes,
      loadProgram: () => Promise.reject(new Error("not used")),
      exitCode: 0,
      signal: new AbortController().signal,
    },
    said,
  };
}

function heldBy(pid: number, holder: Partial<HolderInfo> = {}, more: Partial<Blocking> = {}): Blocking {
  const at = new Date(Date.UTC(2026, 10, 18, 11, 59, 50));
  const info = { id: "h", host: "till-3", pid, startedAt: at, lastSeenAt: at, version: "1", state: "alive" } as const;
  return { path: "stock", since: at, holder: { ...info, ...holder }, ...more };
}

/** Returns what is reported while `blocking` changes over `ms`. */
async function saidWithin(
  ms: number,
  blocking: (afterMs: number) => readonly Blocking[],
  { isCertain = false, ...options }: OutputOptions & { readonly isCertain?: boolean } = {},
): Promise<string[]> {
  const { run, said } = newRun(options);
  const beganMs = Date.now();
  const findBlocking = async (): Promise<readonly Blocking[]> => blocking(Date.now() - beganMs);
  // Time passes: by the fake clock.
  const wait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const waited = explain(run, { what: "stock", findBlocking, wait, isCertain });
  await vi.advanceTimersByTimeAsync(ms);
  await waited;
  await vi.advanceTimersByTimeAsync(600_000);
  return said;
}

const holds = "holdfast: waiting for stock: process 7 on till-3 holds it since 2026-11-18T11:59:50.000Z";

test("a wait of a second is reported once, with the process that blocks it, since when, and how it ends", async () => {
  expect(await saidWithin(900, () => [heldBy(7)])).toEqual([]);
  expect(await saidWithin(50_000, () => [heldBy(7)])).toEqual([
    `${holds}\n          It is free when that process releases it or ends.\n`,
  ]);
});

test("the report tells when a lease lapses, and that a process is gone", async () => {
  const endOf = async (holder: Partial<HolderInfo>, more: Partial<Blocking> = {}): Promise<string | undefined> =>
    (await saidWithin(2_000, () => [heldBy(7, holder, more)]))[0]?.split("\n          ")[1];
  expect(await endOf({ leaseMs: 30_000 })).toBe(
    "It is free when that process releases it or ends, or is silent for its lease of 30 s.\n",
  );
  const lastSeenAt = new Date(Date.now() - 10_000);
  expect(await endOf({ leaseMs: 30_000, lastSeenAt, state: "silent" })).toMatch(
    /silent and may be gone\. Its lease of 30 s lapses in about 1\d s, and this wait ends then\.\n$/,
  );
  expect(await endOf({ leaseMs: 30_000, state: "dead" })).toMatch(/^That process is gone\. .* this wait ends/);
  expect(await endOf({}, { why: "it is 5 s old, and counts for 3600 s" })).toContain("it is 5 s old");
  const named = await saidWithin(2_000, () => [heldBy(7, { name: "till\u001b" }, { tag: "nightly" })]);
  expect(named[0]).toContain("process 7 on till-3 (till\\u{1b}) holds it since 2026-11-18T11:59:50.000Z (nightly)\n");
});

test("a wait is reported again when another process holds the lock, and after a minute", async () => {
  const said = await saidWithin(130_000, (afterMs) => [heldBy(afterMs < 20_000 ? 7 : 8)]);
  expect(said.map((text) => /process \d/.exec(text)?.[0])).toEqual(["process 7", "process 8", "process 8"]);
});

test("work that takes long, and does not wait for one process, is not reported as a wait", async () => {
  let pid = 0;
  expect(await saidWithin(10_000, () => [heldBy(++pid)])).toEqual([]);
  expect(await saidWithin(10_000, () => [])).toEqual([]);
  expect(await saidWithin(10_000, () => [heldBy(process.pid, { host: hostname() })])).toEqual([]);
  expect(await saidWithin(10_000, () => [], { isCertain: true })).toEqual(["holdfast: waiting for stock\n"]);
});

test("programs get the same as a line of JSON, and users who said --quiet get nothing", async () => {
  const [line = ""] = await saidWithin(5_000, () => [heldBy(7)], { isJson: true });
  expect(JSON.parse(line)).toMatchObject({
    waiting: { for: "stock", blockedBy: [{ holder: { pid: 7, host: "till-3" } }], ends: expect.any(String) as string },
  });
  for (const isJson of [false, true])
    expect(await saidWithin(5_000, () => [heldBy(7)], { isJson, isQuiet: true })).toEqual([]);
});
