// The calls on Windows: they wait while another program has a file open, and fail as the calls of
// POSIX do, because protocols branch on those errors.
//
// Windows refuses a call with EBUSY, EPERM or EACCES while another process has the file open without
// sharing it, or while a removed file is still open: its name stays until the last handle is closed.
// Virus scanners and indexers open every file that is new. The same errors stand for a lack of
// permission, and for calls on a directory that POSIX refuses with an error of its own.
import { constants, type BigIntStats } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "../../../errors.ts";
import { findErrno } from "../disk/errno.ts";
import { isAbsence, type Answer, type FileCalls } from "../disk/file-calls.ts";

export interface WindowsOptions {
  /** Default true: a failure without a name counts as an outage, as most failures of the network have none. */
  readonly isShare?: boolean;
  /** Waits between two tries. */
  readonly wait?: (ms: number) => Promise<unknown>;
}

// 950 ms in nine waits: virus scanners and indexers release a file within this time, and a real
// lack of permission is still reported soon.
const waitsMs: readonly number[] = [10, 20, 40, 80, 160, 160, 160, 160, 160];
/**
 * If nothing has the name that a call is to make, so often in a row, the refusal is a lack of
 * permission: the name of a removed file cannot be looked up either.
 */
const absencesMax = 3;
const violations: readonly unknown[] = ["EBUSY", "EPERM", "EACCES"];

/**
 * Says after a refusal what POSIX calls it. `again`: the call may succeed at once. Undefined: wait.
 */
type Explanation = () => Promise<string | undefined>;

interface CallOfPath {
  readonly operation: string;
  readonly path: string;
  /** A second path that must exist. */
  readonly from?: string;
  /** True if `path` must be a directory. */
  readonly isOfDirectory?: boolean;
}

export function windowsCalls(calls: FileCalls, { isShare = true, wait = sleep }: WindowsOptions = {}): FileCalls {
  const { kindOf, explainMaking, explainRename, asPosix } = looksBy(calls, isShare);

  /** `explain` is asked after each refusal. */
  async function run<T>(
    { operation, path, from, isOfDirectory = false }: CallOfPath,
    call: () => Answer<T>,
    explain: Explanation = async () => undefined,
  ): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await call();
      } catch (error) {
        const errno = findErrno(error);
        const isViolation = violations.includes(errno);
        const isExplained = isViolation || (operation === "rename" && errno === "EEXIST");
        const meaning = isExplained ? await explain() : undefined;
        if (meaning !== undefined && meaning !== "again") throw named(error, meaning);
        if (!isViolation && meaning === undefined) throw await asPosix(error, isOfDirectory ? `${path}/.` : path, from);
        const waitMs = waitsMs[tries];
        if (waitMs === undefined) throw errno === "EBUSY" ? busy(operation, path, error) : error;
        if (meaning === undefined) await wait(waitMs);
      }
    }
  }

  const open = async (path: string, flags: string | number, mode?: number): Promise<number> => {
    const isMaking = typeof flags === "string" ? flags.startsWith("w") : (flags & constants.O_EXCL) !== 0;
    const explain = async (): Promise<string | undefined> =>
      flags !== "r" && (await kindOf(path)) === "directory" ? "EISDIR" : undefined;
    return await run(
      { operation: "open", path },
      () => calls.open(path, flags, mode),
      isMaking ? explainMaking(path) : explain,
    );
  };
  const statsOf = async (operation: string, path: string, call: () => Answer<BigIntStats>): Promise<BigIntStats> =>
    narrow(await run({ operation, path }, call));

  return {
    ...calls,
    open,
    openBulk: (path) => run({ operation: "open", path }, () => calls.openBulk(path)),
    fstat: async (fd) => narrow(await calls.fstat(fd)),
    stat: (path) => statsOf("stat", path, () => calls.stat(path)),
    look: (path) => statsOf("look at", path, () => calls.look(path)),
    isThere: (path) => run({ operation: "open", path }, () => calls.isThere(path)),
    lstat: (path) => run({ operation: "stat", path }, () => calls.lstat(path)),
    realpath: (path) => run({ operation: "resolve", path }, () => calls.realpath(path)),
    readlink: (path) => run({ operation: "read link", path }, () => calls.readlink(path)),
    symlink: (target, path) => run({ operation: "link", path }, () => calls.symlink(target, path), explainMaking(path)),
    mkdir: (path) => run({ operation: "mkdir", path }, () => calls.mkdir(path), explainMaking(path)),
    link: async (from, to) => {
      try {
        await run({ operation: "link", path: to, from }, () => calls.link(from, to), explainMaking(to));
      } catch (error) {
        // FAT and exFAT refuse every link, by a failure that libuv gives this name. A lack of
        // permission must not look like a file system without links.
        const meanings: Partial<Record<string, string>> = { EISDIR: "ENOTSUP", EPERM: "EACCES" };
        const meaning = meanings[findErrno(error) ?? ""];
        throw meaning === undefined ? error : named(error, meaning);
      }
    },
    rename: (from, to) =>
      run({ operation: "rename", path: to, from }, () => calls.rename(from, to), explainRename(from, to)),
    unlink: (path) =>
      run(
        { operation: "unlink", path },
        () => calls.unlink(path),
        async () => ((await kindOf(path)) === "directory" ? "EISDIR" : undefined),
      ),
    rmdir: (path) =>
      run(
        { operation: "rmdir", path, isOfDirectory: true },
        () => calls.rmdir(path),
        async () => ((await kindOf(path)) === "file" ? "ENOTDIR" : undefined),
      ),
    listSome: (path, count) => run({ operation: "list", path, isOfDirectory: true }, () => calls.listSome(path, count)),
    hasName: (path, isWanted) =>
      run({ operation: "list", path, isOfDirectory: true }, () => calls.hasName(path, isWanted)),
  };
}

type Kind = "file" | "directory" | "absent" | "hidden";

interface Looks {
  /** Links are not followed. */
  readonly kindOf: (path: string) => Promise<Kind>;
  readonly explainMaking: (path: string) => Explanation;
  readonly explainRename: (from: string, to: string) => Explanation;
  readonly asPosix: (error: unknown, path: string, from?: string) => Promise<unknown>;
}

function looksBy(calls: FileCalls, isShare: boolean): Looks {
  async function kindOf(path: string): Promise<Kind> {
    try {
      const stats = await calls.lstat(path);
      if (stats === undefined) return "absent";
      return stats.isDirectory() ? "directory" : "file";
    } catch (error) {
      return isAbsence(error) ? "absent" : "hidden";
    }
  }

  function explainMaking(path: string): Explanation {
    let absences = 0;
    return async () => {
      const kind = await kindOf(path);
      absences = kind === "absent" ? absences + 1 : 0;
      if (absences === absencesMax) return "EACCES";
      return kind === "file" || kind === "directory" ? "EEXIST" : undefined;
    };
  }

  function explainRename(from: string, to: string): Explanation {
    return async () => {
      if (to.startsWith(`${from}/`)) return "EINVAL";
      const [source, target] = [await kindOf(from), await kindOf(to)];
      if (source === "directory" && target === "file") return "ENOTDIR";
      if (source === "file" && target === "directory") return "EISDIR";
      return source === "directory" && target === "directory" ? await makeRoom(to) : undefined;
    };
  }

  /** Windows replaces no directory, not even an empty one. For a moment nothing has the name. */
  async function makeRoom(directory: string): Promise<string | undefined> {
    try {
      if ((await calls.listSome(directory, 1)).length > 0) return "ENOTEMPTY";
      await calls.rmdir(directory);
      return "again";
    } catch (error) {
      const errno = findErrno(error);
      if (errno === "ENOENT") return "again";
      return errno === "ENOTEMPTY" ? errno : undefined;
    }
  }

  /** A file in place of a directory is ENOTDIR in POSIX; Windows says that the path does not exist. */
  async function asPosix(error: unknown, path: string, from = path): Promise<unknown> {
    const errno = findErrno(error);
    if (errno === "ENOENT") {
      for (const each of new Set([from, path])) if (await isBelowFile(each)) return named(error, "ENOTDIR");
    } else if (isShare && (error as { readonly code?: unknown }).code === "UNKNOWN") return named(error, "EHOSTDOWN");
    return error;
  }

  async function isBelowFile(path: string): Promise<boolean> {
    for (let above = dirname(path); ; above = dirname(above)) {
      try {
        return !(await calls.stat(above)).isDirectory();
      } catch (error) {
        if (!isAbsence(error) || dirname(above) === above) return false;
      }
    }
  }

  return { kindOf, explainMaking, explainRename, asPosix };
}

/** Some versions of libuv give a name 64 bits of the volume's number, and a handle 32. */
function narrow(stats: BigIntStats): BigIntStats {
  stats.dev = BigInt.asUintN(32, stats.dev);
  return stats;
}

function named(cause: unknown, code: string): Error {
  return Object.assign(new Error(code, { cause }), { code });
}

function busy(operation: string, path: string, cause: unknown): HoldfastError {
  const message = `${operation} ${path}: another program has it open and does not share it. Close it there, or exclude this folder from virus scanners and indexers.`;
  return new HoldfastError(
    "RESOURCE_BUSY",
    message,
    { path, errno: "EBUSY", blockedBy: [], worthWaiting: true },
    cause,
  );
}
