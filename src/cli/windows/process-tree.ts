// Ends a process of Windows together with everything that it started. Windows has no process groups: the tree is found by
// the parents that processes name.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  /** Absent if the list does not tell it. */
  readonly startedMs?: number;
}

/** The calls to Windows. Tests pass their own. */
export interface TreeCalls {
  /** Ends a process and its descendants. Rejects if that is not possible, for example because it has ended. */
  readonly endTree: (pid: number) => Promise<void>;
  readonly list: () => Promise<readonly ListedProcess[]>;
  readonly end: (pid: number) => void;
}

/** A process may start others while it is being ended. */
const roundsMax = 5;

/**
 * Ends the process `pid`, which was started at `startedMs`, and its descendants, also those that it has left behind.
 * Never rejects: a process that cannot be ended is left alone.
 */
export async function endTree(pid: number, startedMs: number, calls: TreeCalls = windows): Promise<void> {
  try {
    return await calls.endTree(pid);
  } catch {
    // It has ended, and its children have not: they still name it as their parent.
  }
  calls.end(pid);
  for (let round = 0; round < roundsMax; round++) {
    const found = descendantsOf(pid, startedMs, await calls.list().catch(() => []));
    if (found.length === 0) return;
    for (const each of found) calls.end(each);
  }
}

/**
 * Returns the descendants of a process that may have ended. A process that is older than its parent is not its child:
 * it names an earlier process of the same number.
 */
function descendantsOf(pid: number, startedMs: number, all: readonly ListedProcess[]): number[] {
  const found = new Map<number, number>([[pid, startedMs]]);
  for (const [parent, since] of found)
    for (const each of all)
      if (each.parent === parent && !found.has(each.pid) && (each.startedMs ?? since) >= since)
        found.set(each.pid, each.startedMs ?? since);
  found.delete(pid);
  return [...found.keys()];
}

const run = promisify(execFile);
const options = { windowsHide: true };
const question =
  "Get-CimInstance Win32_Process | Where-Object CreationDate | ForEach-Object { '{0} {1} {2}' -f $_.ProcessId, $_.ParentProcessId, ([DateTimeOffset]$_.CreationDate).ToUnixTimeMilliseconds() }";

const windows: TreeCalls = {
  endTree: async (pid) => void (await run("taskkill.exe", ["/pid", String(pid), "/T", "/F"], options)),
  list: async () => {
    const listed = await listByPowerShell().catch(() => []);
    return listed.length > 0 ? listed : await listByWmic();
  },
  end: (pid) => {
    try {
      process.kill(pid);
    } catch {
      // It has ended meanwhile, or belongs to another user.
    }
  },
};

async function listByPowerShell(): Promise<ListedProcess[]> {
  const args = ["-NoProfile", "-NonInteractive", "-Command", question];
  const rows = numbersOf((await run("powershell.exe", args, options)).stdout);
  return rows.map(([pid = 0, parent = 0, startedMs = 0]) => ({ pid, parent, startedMs }));
}

/** For a system without PowerShell, such as Wine. New versions of Windows lack this program. */
async function listByWmic(): Promise<ListedProcess[]> {
  const args = ["process", "get", "ParentProcessId,ProcessId"];
  const rows = numbersOf((await run("wmic.exe", args, { ...options, encoding: "utf16le" })).stdout);
  return rows.map(([parent = 0, pid = 0]) => ({ pid, parent }));
}

/** Returns the lines of a table that consist of numbers. */
function numbersOf(text: string): number[][] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /^\d+(\s+\d+)+$/.test(line))
    .map((line) => line.split(/\s+/).map(Number));
}
