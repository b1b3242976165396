import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isKnownBoot } from "../../src/ports/host.ts";
import { givenBootId, openNodeHost, parseProcessStat } from "../../src/ports/node/host.ts";
import { asOrdinaryUser } from "../sites/scratch.ts";

function start(command: string, ...args: string[]): ChildProcess & { pid: number } {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  if (child.pid === undefined) throw new Error(`${command} did not start`);
  return child as ChildProcess & { pid: number };
}

const hasPython = process.platform === "linux" && spawnSync("python3", ["--version"]).status === 0;
/** The first thread ends by itself, and not the process: the number of that call depends on the processor. */
const threadThatStays = `
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("started", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)`;

const canUnshare = spawnSync("unshare", ["--time", "--pid", "--fork", "true"]).status === 0;
const hostModule = new URL("../../dist/ports/node/host.js", import.meta.url).href;

describe("the real host", () => {
  it("knows this process", async () => {
    const host = await openNodeHost();
    expect(host.pid).toBe(process.pid);
    expect(host.name).not.toBe("");
    expect(host.startedAtMs).toBeLessThanOrEqual(Date.now());
    expect(host.startedAtMs).toBeGreaterThan(Date.now() - process.uptime() * 1000 - 60_000);
    expect(host.processState(host.pid, host.startMark)).toBe("alive");
    expect(host.processState(host.pid, "")).toBe("alive");
  });

  it.runIf(process.platform === "linux")("has the kernel's boot id, equal for every process", async () => {
    const { bootId } = await openNodeHost();
    expect(bootId).toBe(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  });

  it("takes nothing but a UUID for a boot id: what a sandbox puts in its place may be the same after a restart", () => {
    const given = "77ca91a9-5cd0-49d7-af83-a67b82c278f7";
    expect(givenBootId(`${given}\n`)).toBe(given);
    expect(isKnownBoot(givenBootId(given.toUpperCase()))).toBe(true);
    for (const text of ["", "\n", "none", `${given}0`]) {
      expect(isKnownBoot(givenBootId(text))).toBe(false);
      expect(givenBootId(text)).not.toBe(givenBootId(text));
    }
  });

  it.runIf(process.platform === "linux")("tells the start of another process apart from its own", async () => {
    const host = await openNodeHost();
    const child = start("sleep", "60");
    expect(host.startMarkOf(host.pid)).toBe(host.startMark);
    expect(host.startMarkOf(child.pid)).toMatch(/^\d+$/);
    expect(host.processState(child.pid, host.startMarkOf(child.pid))).toBe("alive");
    child.kill("SIGKILL");
    await once(child, "close");
    expect(host.startMarkOf(child.pid)).toBe("");
  });

  it.runIf(process.platform === "linux")("knows when a process began, as long as it runs", async () => {
    const host = await openNodeHost();
    const beforeMs = Date.now();
    const child = start("sleep", "60");
    const startMs = host.findStartMs(child.pid) ?? 0;
    // Ticks of 10 ms on both sides, and the moment that Node needs to note when it began itself.
    expect(startMs).toBeGreaterThan(beforeMs - 1000);
    expect(startMs).toBeLessThan(Date.now() + 1000);
    expect(host.findStartMs(1)).toBeLessThan(beforeMs);
    child.kill("SIGKILL");
    await once(child, "close");
    expect(host.findStartMs(child.pid)).toBe(undefined);
    expect(host.findStartMs(2 ** 31 + 1)).toBe(undefined);
  });

  it.runIf(process.platform === "linux")("knows whose process table it asks, the same as its parent's", async () => {
    const { processSpace } = await openNodeHost();
    const of = (pid: number): string =>
      ["pid", "time"].map((kind) => readlinkSync(`/proc/${pid}/ns/${kind}`)).join(" ");
    expect(processSpace).toMatch(/^pid:\[\d+\] time:\[\d+\]$/);
    expect(processSpace).toBe(of(process.ppid));
  });

  it("calls a process dead when it has ended", async () => {
    const host = await openNodeHost();
    const child = start("sleep", "60");
    expect(host.processState(child.pid, "")).toBe("alive");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(host.processState(child.pid, "")).toBe("dead");
  });

  it.runIf(process.platform === "linux")("calls a process dead when another one has its pid", async () => {
    const host = await openNodeHost();
    expect(host.startMark).toMatch(/^\d+$/);
    expect(host.processState(host.pid, `${host.startMark}0`)).toBe("dead");
  });

  it.runIf(process.platform === "linux")("calls a zombie dead", async () => {
    const host = await openNodeHost();
    // The shell becomes `sleep`, which never looks at the child that the shell had started; only
    // then may the child end.
    const parent = start("sh", "-c", "sleep 60 & echo $!; exec sleep 60");
    const [line] = (await once(parent.stdout as NodeJS.EventEmitter, "data")) as [Buffer];
    const zombie = Number(line.toString());
    const stat = (pid: number): string => readFileSync(`/proc/${pid}/stat`, "utf8");
    await vi.waitFor(() => expect(stat(parent.pid)).toContain("(sleep)"), { timeout: 20_000 });
    expect(host.processState(zombie, "")).toBe("alive");
    process.kill(zombie, "SIGKILL");
    await vi.waitFor(() => expect(parseProcessStat(stat(zombie))?.state).toBe("Z"), { timeout: 20_000 });
    expect(host.processState(zombie, "")).toBe("dead");
  });

  it.runIf(hasPython)("calls a zombie alive while a thread of it runs: that may be in a call to the disk", async () => {
    const host = await openNodeHost();
    const { pid, stdout } = start("python3", "-c", threadThatStays);
    await once(stdout as NodeJS.EventEmitter, "data");
    const entry = (): unknown => parseProcessStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
    await vi.waitFor(() => expect(entry()).toMatchObject({ state: "Z", threads: 2 }), { timeout: 20_000 });
    expect(host.processState(pid, "")).toBe("alive");
  });

  // A reader in another time namespace saw another start of a living holder, and took its lock.
  it.runIf(canUnshare)("is in another process table where another clock tells when processes began", async () => {
    const program = `
      const { openNodeHost } = await import(${JSON.stringify(hostModule)});
      console.log((await openNodeHost()).processSpace);`;
    const node = [process.execPath, "--input-type=module", "-e", program];
    const { stdout } = start("unshare", "--time", "--boottime", "100000", ...node);
    const [line] = (await once(stdout as NodeJS.EventEmitter, "data")) as [Buffer];
    expect(line.toString()).toMatch(/^pid:/);
    expect(line.toString().trim()).not.toBe((await openNodeHost()).processSpace);
  });

  // A holder was taken for dead when the process that has its pid in the other table ended.
  it.runIf(canUnshare)("asks no process table that belongs to another pid namespace", async () => {
    const program = `
      const { openNodeHost } = await import(${JSON.stringify(hostModule)});
      const { pid, startMark, startMarkOf, processState } = await openNodeHost();
      console.log(JSON.stringify([startMark, startMarkOf(pid), processState(pid, "1")]));`;
    const { stdout } = start("unshare", "--pid", "--fork", process.execPath, "--input-type=module", "-e", program);
    const [line] = (await once(stdout as NodeJS.EventEmitter, "data")) as [Buffer];
    expect(JSON.parse(line.toString())).toEqual(["", "", "alive"]);
  });

  it("calls a process of another user alive", async () => {
    const host = await openNodeHost();
    // Root, whatever it pretends to be, may signal its own processes; so as root it takes two other
    // users to see a refusal.
    const stranger = process.getuid?.() === 0 ? spawn("sleep", ["60"], { uid: 12_345, stdio: "ignore" }) : undefined;
    onTestFinished(() => void stranger?.kill("SIGKILL"));
    const pid = stranger?.pid ?? 1;
    await asOrdinaryUser(async () => {
      expect(() => process.kill(pid, 0)).toThrow("EPERM");
      expect(host.processState(pid, "")).toBe("alive");
    });
  });

  it("calls a process dead whose number is larger than any process can have", async () => {
    const host = await openNodeHost();
    for (const pid of [2 ** 31, 2 ** 32 - 1]) expect(host.processState(pid, "")).toBe("dead");
  });

  it("refuses numbers that would address a group of processes", async () => {
    const host = await openNodeHost();
    for (const pid of [0, -1, 1.5, Number.NaN]) {
      expect(() => host.processState(pid, "")).toThrow(RangeError);
      expect(() => host.startMarkOf(pid)).toThrow(RangeError);
    }
  });
});

describe("the process table entry", () => {
  const rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21";
  it.each(["node", "a name", "(sd-pam)", "a) R 1 (b", "x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"])(
    "is read past a process that calls itself %s",
    (name) =>
      expect(parseProcessStat(`4711 (${name}) ${rest}\n`)).toEqual({ state: "S", threads: 17, startMark: "987654" }),
  );

  it("is undefined when it is cut short", () => {
    expect(parseProcessStat("")).toBe(undefined);
    expect(parseProcessStat("4711 (node) S 1 2")).toBe(undefined);
  });
});
