// Stats a path of a share without using any cache of the client.
import type { BigIntStats } from "node:fs";
import { dirname } from "node:path";
import { findErrno } from "./errno.ts";
import type { FileCalls } from "./file-calls.ts";

/** Errors from opening something that exists: its kind can still be determined. */
const unreadable: readonly unknown[] = ["EACCES", "EPERM", "ENXIO", "ENODEV", "EBUSY", "ETXTBSY", "EISDIR"];

/** `calls.open` decides when to trust an absence: each kind of client forgets in its own way. */
export async function statWithoutCache(
  calls: Pick<FileCalls, "open" | "close" | "fstat" | "stat">,
  path: string,
): Promise<BigIntStats> {
  // A client revalidates a directory with its server when the directory is opened, and then looks
  // its names up again. If it cannot be opened, opening the path itself shows why.
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

/** True if it could be opened. */
export async function tryOpening({ open, close }: Pick<FileCalls, "open" | "close">, path: string): Promise<boolean> {
  try {
    await close(await open(path, "r"));
    return true;
  } catch {
    return false;
  }
}
