// This process and this machine, from the process table and the kernel.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { promisify } from "node:util";
import { unknownBootId, type Host } from "../host.ts";
import { findErrno } from "./disk/errno.ts";

export async function openNodeHost(): Promise<Host> {
  return {
    name: hostname(),
    pid: process.pid,
    bootId: await findBootId(process.platform),
    processSpace: findProcessSpace(process.platform),
    startedAtMs: Math.round(performance.timeOrigin),
    startMark: startMarkOf(process.pid),
    processState,
    startMarkOf,
    findStartMs,
    warn,
  };
}

export function warn(message: string): void {
  process.emitWarning(message, "HoldfastWarning");
}

/** macOS and Windows are written from their documentation and were not run. */
async function findBootId(platform: NodeJS.Platform): Promise<string> {
  try {
    if (platform === "linux") return givenBootId(readFileSync("/proc/sys/kernel/random/boot_id", "utf8"));
    if (platform === "darwin")
      return givenBootId((await promisify(execFile)("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"])).stdout);
    // Two processes can round to neighbouring seconds. That costs them only the quick proof of
    // death, which needs equal ids.
    if (platform === "win32") return `${hostname()}-${Math.round(Date.now() / 1000 - uptime())}`;
  } catch {
    // A sandbox hides it. An id that no other process has claims nothing.
  }
  return unknownBootId(randomUUID());
}

/** A sandbox may put anything in its place, and the same after a restart. */
export function givenBootId(text: string): string {
  const id = text.trim();
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id) ? id : unknownBootId(randomUUID());
}

/**
 * `pid:[4026531836] time:[4026531834]`: the numbers of a pid namespace, which no other living one of this kernel has,
 * and of a time namespace. /proc tells the start of a process by the clock of the namespace that asks.
 */
function findProcessSpace(platform: NodeJS.Platform): string {
  if (platform !== "linux") return "";
  try {
    return ["pid", "time"].map(findNamespace).join(" ").trim();
  } catch {
    // A sandbox hides it. A name that no other process has claims nothing.
    return unknownBootId(randomUUID());
  }
}

/** Empty where the kernel has no such kind. */
function findNamespace(kind: string): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch (error) {
    if (kind !== "pid" && findErrno(error) === "ENOENT") return "";
    throw error;
  }
}

function startMarkOf(pid: number): string {
  mustBePid(pid);
  return findEntry(pid)?.startMark ?? "";
}

/** 0 and negative numbers would address process groups. */
function mustBePid(pid: number): void {
  if (!Number.isSafeInteger(pid) || pid < 1) throw new RangeError(`not a process id: ${pid}`);
}

// No process that Node can see has a larger one; as a signed number it would address a group, or
// all processes.
const pidMax = 2 ** 31 - 1;

function processState(pid: number, startMark: string): "alive" | "dead" {
  mustBePid(pid);
  if (pid > pidMax) return "dead";
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (findErrno(error) === "ESRCH") return "dead";
    // EPERM: it is there and belongs to another user.
  }
  const entry = findEntry(pid);
  // It is there, but cannot be seen (/proc mounted with hidepid, or not Linux).
  if (entry === undefined) return "alive";
  // A zombie has run its last instruction and only waits for its parent to look, unless a thread of
  // it is still in a call to the disk.
  if ((entry.state === "Z" || entry.state === "X") && entry.threads <= 1) return "dead";
  return startMark !== "" && entry.startMark !== startMark ? "dead" : "alive";
}

/** What /proc counts in, on every architecture that Node runs on. */
const tickMs = 10;

/**
 * Counted from the start of this process, which the wall clock knows: what /proc says of the boot
 * may be made up in a container.
 */
function findStartMs(pid: number): number | undefined {
  const [entry, own] = [findEntry(pid), findEntry(process.pid)];
  if (entry === undefined || own === undefined || processState(pid, entry.startMark) === "dead") return undefined;
  return performance.timeOrigin + (Number(entry.startMark) - Number(own.startMark)) * tickMs;
}

interface ProcessEntry {
  readonly state: string;
  readonly threads: number;
  /** Clock ticks from boot to the start of the process. */
  readonly startMark: string;
}

function findEntry(pid: number): ProcessEntry | undefined {
  if (process.platform !== "linux" || !showsOwnTable()) return undefined;
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    // Ended since, or hidden; the caller asks the process table first.
    return undefined;
  }
}

/**
 * Whether /proc shows the table that the pids of this process are of. In a pid namespace that was made without a /proc
 * of its own it shows another one, where each pid is another process.
 */
function showsOwnTable(): boolean {
  try {
    return readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}

/**
 * `4711 (a name) with (parens) S 1 …`: the name is the process's own choice, so fields are counted
 * from the last parenthesis.
 */
export function parseProcessStat(text: string): ProcessEntry | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // Fields 3, 20 and 22 of proc(5), where the first after the name is number 3.
  const [state, threads, startMark] = [fields[0], fields[17], fields[19]];
  return state === undefined || startMark === undefined ? undefined : { state, threads: Number(threads), startMark };
}
