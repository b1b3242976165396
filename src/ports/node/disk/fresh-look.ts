// A look at a path of a share that no cache of the client answers.
import type { BigIntStats } from "node:fs";
import { dirname } from "node:path";
import { findErrno } from "./errno.ts";
import type { FileCalls } from "./file-calls.ts";

/** Failures to open a thing that is there: its kind is known all the same. */
const unreadable: readonly unknown[] = ["EACCES", "EPERM", "ENXIO", "ENODEV", "EBUSY", "ETXTBSY", "EISDIR"];

/**
 * `calls.open` decides what an absence is worth: each kind of client is made to forget in its own
 * way.
 */
export async function lookAnew(
  calls: Pick<FileCalls, "open" | "close" | "fstat" | "stat">,
  path: string,
): Promise<BigIntStats> {
  // A client compares a directory with its server when it is opened, and then looks the names in it
  // up anew. Where it cannot be opened, the look at the path itself tells why.
  await tryOpening(calls, dirname(path));
  let fd: number;
  try {
    fd = await calls.open(path, "r");
  } catch (error) {
    if (!unreadable.includes(findErrno(error))) throw error;
    return await calls.stat(path);
  }
  try {
    return await calls.fstat(fd);
  } finally {
    await calls.close(fd);
  }
}

/** Whether it could be opened. */
export async function tryOpening({ open, close }: Pick<FileCalls, "open" | "close">, path: string): Promise<boolean> {
  try {
    await close(await open(path, "r"));
    return true;
  } catch {
    return false;
  }
}
