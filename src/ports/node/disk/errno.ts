// Gives every failure of a Node file call its POSIX name; no other file looks at error numbers.
import { constants } from "node:os";
import { HoldfastError } from "../../../errors.ts";
import { diskError } from "../../disk-error.ts";

/**
 * The error that a `Disk` rejects with. What is not a failure of the file system (a path with a
 * zero byte, a wrong type) comes back unchanged: it is a mistake of the caller, and no protocol may
 * branch on it.
 */
export function toDiskError(error: unknown, operation: string, path: string): unknown {
  if (error instanceof HoldfastError) return error;
  const errno = findErrno(error);
  return errno === undefined ? error : diskError(errno, operation, path, error);
}

/**
 * The POSIX name of what a Node file call, or the native lock module, threw; undefined when it is
 * no such failure.
 */
export function findErrno(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code !== "string" || code.startsWith("ERR_")) return undefined;
  if (/^E[A-Z0-9]+$/.test(code)) return code;
  // libuv has no name for some numbers, of which ESTALE and EDQUOT matter here: "Unknown system
  // error -116". The native lock module gives only this text, so the number is taken from it and
  // not from `error.errno`.
  const number = /^Unknown system error -(\d+)$/.exec(code)?.[1];
  // A failure without a name (also libuv's own "UNKNOWN", which on Windows stands for most network
  // failures) is EIO: after EIO every protocol finds out by content whether the operation happened.
  return (number === undefined ? undefined : nameOf.get(Number(number))) ?? "EIO";
}

// The table of this platform: ESTALE is 116 on Linux and 70 on macOS.
const nameOf: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
);
