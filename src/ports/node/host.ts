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

/** The macOS and Windows branches are written from documentation and were not run. */
async function findBootId(platform: NodeJS.Platform): Promise<string> {
  try {
    if (platform === "linux") return givenBootId(readFileSync("/proc/sys/kernel/random/boot_id", "utf8"));
    if (platform === "darwin")
      return givenBootId((await promisify(execFile)("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"])).stdout);
    // Two processes can round to neighbouring seconds. That only costs them the quick proof of
    // death, which needs equal ids.
    if (platform === "win32") return `${hostname()}-${Math.round(Date.now() / 1000 - uptime())}`;
  } catch {
    // A sandbox hides it. Use an id that no other process has: it proves nothing.
  }
  return unknownBootId(randomUUID());
}

/**
 * Returns an unknown id unless the text is a real boot id: a sandbox may put any text there, and the same one after a
 * restart.
 */
export function givenBootId(text: string): string {
  const id = text.trim();
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id) ? id : unknownBootId(randomUUID());
}

/**
 * `pid:[4026531836] time:[4026531834]`: the number of a pid namespace, which is unique among the
 * living ones of this kernel, and of a time namespace. /proc reports the start of a process by the
 * clock of the reader's namespace.
 */
function findProcessSpace(platform: NodeJS.Platform): string {
  if (platform !== "linux") return "";
  try {
    return ["pid", "time"].map(findNamespace).join(" ").trim();
  } catch {
    // A sandbox hides it. Use a name that no other process has: it proves nothing.
    return unknownBootId(randomUUID());
  }
}

/** Returns "" if the kernel has no such namespace. */
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

// No process that Node can see has a larger pid; as a signed number it would address a group, or
// all processes.
const pidMax = 2 ** 31 - 1;

function processState(pid: number, startMark: string): "alive" | "dead" {
  mustBePid(pid);
  if (pid > pidMax) return "dead";
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (findErrno(error) === "ESRCH") return "dead";
    // EPERM: it exists and belongs to another user.
  }
  const entry = findEntry(pid);
  // It exists but is not visible (/proc mounted with hidepid, or not Linux).
  if (entry === undefined) return "alive";
  // A zombie has run its last instruction and only waits for its parent, unless one of its threads
  // is still in a call to the disk.
  if ((entry.state === "Z" || entry.state === "X") && entry.threads <= 1) return "dead";
  return startMark !== "" && entry.startMark !== startMark ? "dead" : "alive";
}

/** The unit of /proc, on every architecture that Node runs on. */
const tickMs = 10;

/**
 * Counts from the start of this process, which the wall clock knows: a container may show a made-up
 * boot time in /proc.
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
    // It ended since, or is hidden; the caller checks the process table first.
    return undefined;
  }
}

/**
 * True if /proc shows the process table of this process's pids. In a pid namespace without its own
 * /proc it shows another table, in which each pid is another process.
 */
function showsOwnTable(): boolean {
  try {
    return readlinkSync("/proc/self") === String(process.pid);
  } catch {
    return false;
  }
}

/**
 * `4711 (a name) with (parens) S 1 …`: a process chooses its own name, so fields are counted from
 * the last parenthesis.
 */
export function parseProcessStat(text: string): ProcessEntry | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // Fields 3, 20 and 22 of proc(5), where the first after the name is number 3.
  const [state, threads, startMark] = [fields[0], fields[17], fields[19]];
  return state === undefined || startMark === undefined ? undefined : { state, threads: Number(threads), startMark };
}
