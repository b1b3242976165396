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

/** The calls that find out what a refusal means. `lstat` does not follow a link. */
export interface WindowsLooks {
  lstat(path: string): Answer<{ isDirectory(): boolean } | undefined>;
  stat(path: string): Answer<{ isDirectory(): boolean }>;
  listSome(path: string, count: number): Answer<string[]>;
  rmdir(path: string): Answer<void>;
}

/** How calls are made on Windows, whatever makes them: also those of the simulated disk. */
export class WindowsRules {
  readonly #looks: WindowsLooks;
  readonly #isShare: boolean;
  readonly #wait: (ms: number) => Promise<unknown>;

  constructor(looks: WindowsLooks, { isShare = true, wait = sleep }: WindowsOptions = {}) {
    this.#looks = looks;
    this.#isShare = isShare;
    this.#wait = wait;
  }

  /** `explain` is asked after each refusal. */
  async run<T>(
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
        if (!isViolation && meaning === undefined)
          throw await this.#asPosix(error, isOfDirectory ? `${path}/.` : path, from);
        const waitMs = waitsMs[tries];
        if (waitMs === undefined) {
          // Windows says EPERM for a directory with an open file below, and for a removed file.
          const isBusy =
            errno === "EBUSY" ||
            (from !== undefined && (await this.#isMoving(operation, from))) ||
            (await this.#isRemoved(path));
          throw isBusy ? busy(operation, path, error) : error;
        }
        if (meaning === undefined) await this.#wait(waitMs);
      }
    }
  }

  /** Links are not followed. */
  async kindOf(path: string): Promise<"file" | "directory" | "absent" | "hidden"> {
    try {
      const stats = await this.#looks.lstat(path);
      if (stats === undefined) return "absent";
      return stats.isDirectory() ? "directory" : "file";
    } catch (error) {
      return isAbsence(error) ? "absent" : "hidden";
    }
  }

  making(path: string): Explanation {
    let absences = 0;
    return async () => {
      const kind = await this.kindOf(path);
      absences = kind === "absent" ? absences + 1 : 0;
      if (absences === absencesMax) return "EACCES";
      return kind === "file" || kind === "directory" ? "EEXIST" : undefined;
    };
  }

  renaming(from: string, to: string): Explanation {
    return async () => {
      if (to.startsWith(`${from}/`)) return "EINVAL";
      const [source, target] = [await this.kindOf(from), await this.kindOf(to)];
      if (source === "directory" && target === "file") return "ENOTDIR";
      if (source === "file" && target === "directory") return "EISDIR";
      return source === "directory" && target === "directory" ? await this.#makeRoom(to) : undefined;
    };
  }

  /**
   * A directory that is renamed onto a file replaces it on Windows. So the target is looked up
   * first. A file that gets the name between the look and the rename is lost.
   */
  async rename(from: string, to: string, call: () => Answer<void>): Promise<void> {
    const checked = async (): Promise<void> => {
      if ((await this.kindOf(from)) === "directory" && (await this.kindOf(to)) === "file")
        throw Object.assign(new Error("ENOTDIR"), { code: "ENOTDIR" });
      await call();
    };
    await this.run({ operation: "rename", path: to, from }, checked, this.renaming(from, to));
  }

  unlinking(path: string): Explanation {
    return async () => ((await this.kindOf(path)) === "directory" ? "EISDIR" : undefined);
  }

  /** True for the name of a file that was removed and is still open: only its directory tells of it. */
  async #isRemoved(path: string): Promise<boolean> {
    if ((await this.kindOf(path)) !== "hidden") return false;
    try {
      return (await this.#looks.listSome(dirname(path), 1)).length > 0;
    } catch {
      return false;
    }
  }

  async #isMoving(operation: string, from: string): Promise<boolean> {
    return operation === "rename" && (await this.kindOf(from)) === "directory";
  }

  /** Windows replaces no directory, not even an empty one. For a moment nothing has the name. */
  async #makeRoom(directory: string): Promise<string | undefined> {
    try {
      if ((await this.#looks.listSome(directory, 1)).length > 0) return "ENOTEMPTY";
      await this.#looks.rmdir(directory);
      return "again";
    } catch (error) {
      const errno = findErrno(error);
      if (errno === "ENOENT") return "again";
      return errno === "ENOTEMPTY" ? errno : undefined;
    }
  }

  /** A file in place of a directory is ENOTDIR in POSIX; Windows says that the path does not exist. */
  async #asPosix(error: unknown, path: string, from = path): Promise<unknown> {
    const errno = findErrno(error);
    if (errno === "ENOENT") {
      for (const each of new Set([from, path])) if (await this.#isBelowFile(each)) return named(error, "ENOTDIR");
    } else if (this.#isShare && (error as { readonly code?: unknown }).code === "UNKNOWN")
      return named(error, "EHOSTDOWN");
    return error;
  }

  async #isBelowFile(path: string): Promise<boolean> {
    for (let above = dirname(path); ; above = dirname(above)) {
      try {
        return !(await this.#looks.stat(above)).isDirectory();
      } catch (error) {
        if (!isAbsence(error) || dirname(above) === above) return false;
      }
    }
  }
}

export function windowsCalls(calls: FileCalls, options: WindowsOptions = {}): FileCalls {
  const rules = new WindowsRules(calls, options);
  const run: WindowsRules["run"] = (call, action, explain) => rules.run(call, action, explain);
  const open = async (path: string, flags: string | number, mode?: number): Promise<number> => {
    const isMaking = typeof flags === "string" ? flags.startsWith("w") : (flags & constants.O_EXCL) !== 0;
    const explain = async (): Promise<string | undefined> =>
      flags !== "r" && (await rules.kindOf(path)) === "directory" ? "EISDIR" : undefined;
    return await run(
      { operation: "open", path },
      () => calls.open(path, flags, mode),
      isMaking ? rules.making(path) : explain,
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
    symlink: (target, path) => run({ operation: "link", path }, () => calls.symlink(target, path), rules.making(path)),
    mkdir: (path) => run({ operation: "mkdir", path }, () => calls.mkdir(path), rules.making(path)),
    link: async (from, to) => {
      try {
        await run({ operation: "link", path: to, from }, () => calls.link(from, to), rules.making(to));
      } catch (error) {
        // FAT and exFAT refuse every link, by a failure that libuv gives this name. A lack of
        // permission must not look like a file system without links.
        const meanings: Partial<Record<string, string>> = { EISDIR: "ENOTSUP", EPERM: "EACCES" };
        const meaning = meanings[findErrno(error) ?? ""];
        throw meaning === undefined ? error : named(error, meaning);
      }
    },
    rename: (from, to) => rules.rename(from, to, () => calls.rename(from, to)),
    unlink: (path) => run({ operation: "unlink", path }, () => calls.unlink(path), rules.unlinking(path)),
    rmdir: (path) =>
      run(
        { operation: "rmdir", path, isOfDirectory: true },
        () => calls.rmdir(path),
        async () => ((await rules.kindOf(path)) === "file" ? "ENOTDIR" : undefined),
      ),
    listSome: (path, count) => run({ operation: "list", path, isOfDirectory: true }, () => calls.listSome(path, count)),
    hasName: (path, isWanted) =>
      run({ operation: "list", path, isOfDirectory: true }, () => calls.hasName(path, isWanted)),
  };
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
  const message = `${operation} ${path}: another program has it, or a file in it, open and does not share it. Close it there, or exclude this folder from virus scanners and indexers.`;
  return new HoldfastError(
    "RESOURCE_BUSY",
    message,
    { path, errno: "EBUSY", blockedBy: [], worthWaiting: true },
    cause,
  );
}
