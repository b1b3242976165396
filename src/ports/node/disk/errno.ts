// Gives every failure of a Node file call its POSIX name. No other file reads error numbers.
import { constants } from "node:os";
import { isHoldfastError } from "../../../errors.ts";
import { diskError } from "../../disk-error.ts";

/**
 * Returns the error that a `Disk` rejects with. An error that is not a failure of the file system
 * (a path with a zero byte, a wrong type) is returned unchanged: it is a mistake of the caller, and
 * no protocol may branch on it.
 */
export function toDiskError(error: unknown, operation: string, path: string): unknown {
  if (isHoldfastError(error)) return error;
  const errno = findErrno(error);
  return errno === undefined ? error : diskError(errno, operation, path, error);
}

/**
 * Returns the POSIX name of an error thrown by a Node file call or the native lock module;
 * undefined for any other error.
 */
export function findErrno(error: unknown): string | undefined {
  // Check the code only: under jest an error of Node is not an `instanceof Error`.
  const code = (error as { code?: unknown } | null | undefined)?.code;
  if (typeof code !== "string" || code.startsWith("ERR_")) return undefined;
  if (/^E[A-Z0-9]+$/.test(code)) return code;
  // libuv has no name for some numbers, of which ESTALE and EDQUOT matter here: "Unknown system
  // error -116". The native lock module gives only this text, so the number comes from it and not
  // from `error.errno`.
  const number = /^Unknown system error -(\d+)$/.exec(code)?.[1];
  // A failure without a name becomes EIO. That includes libuv's own "UNKNOWN", which on Windows
  // stands for most network failures. After EIO every protocol determines by content if the
  // operation happened.
  return (number === undefined ? undefined : nameOf.get(Number(number))) ?? "EIO";
}

// The table of this platform: ESTALE is 116 on Linux and 70 on macOS.
const nameOf: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.errno).map(([name, number]) => [number, name]),
);
