// The calls for NFS: they open nothing under a delegation, and trust an absence only after opening
// the directory.
//
// A server may delegate a file to the machine that reads it, and recall it when another machine
// wants to link, rename or remove it. It cannot recall it from a machine that sleeps or is
// disconnected before that machine's lease at the server expires (90 s by default), and waiting
// clients retry at growing intervals: a free lock was measured to stay blocked for 45 s. A Linux
// client requests no delegation if a file is opened for direct I/O, which costs nothing for a small
// file.
//
// A client caches for up to half a minute that a name was absent, unless it is mounted with
// `lookupcache=pos` or `none`. A file that another machine had made meanwhile was missed 8 of 8
// times on two servers, and found 8 of 8 times if its directory had been opened in between: opening
// a directory makes the client revalidate it with the server.
import { constants } from "node:fs";
import { dirname } from "node:path";
import { findErrno } from "./errno.ts";
import { forReading, isAbsence, pooledCalls, type FileCalls } from "./file-calls.ts";
import { statWithoutCache, tryOpening } from "./uncached-stat.ts";
import { takingTurns } from "./open-turns.ts";
import { checkingAbsences } from "./remembered-absence.ts";

const { O_RDWR, O_CREAT, O_EXCL } = constants;
const noDelegation = constants.O_DIRECT ?? 0;
/**
 * Flags that read. A file that is only written is never delegated; one that a machine makes, writes
 * and reads would be.
 */
const readingFlags: Readonly<Record<string, number>> = { "r+": O_RDWR, "wx+": O_RDWR | O_CREAT | O_EXCL };

/** For NFS 4 where the client caches no absence. Exported for tests. */
export const nfsCalls: FileCalls = nfsCallsOver(pooledCalls);

/** Exported for tests. */
export function nfsCallsOver(calls: FileCalls): FileCalls {
  // `openBulk` is unchanged: a file that is read in bulk may be delegated (decision 59).
  const turns = takingTurns(calls);
  const open = async (path: string, flags: string | number, mode?: number): Promise<number> => {
    if (flags === "r") return await openForReading(path);
    const reading = typeof flags === "number" ? flags : readingFlags[flags];
    return await turns.open(path, reading === undefined ? flags : reading | noDelegation, mode);
  };
  const openForReading = async (path: string): Promise<number> => {
    try {
      return await turns.open(path, forReading | noDelegation);
    } catch (error) {
      if (findErrno(error) !== "EINVAL") throw error;
      // A directory: it is never delegated, and has no state that opens and closes could confuse.
      return await calls.open(path, "r");
    }
  };
  const isThere = async (path: string): Promise<boolean> => {
    try {
      await turns.close(await openForReading(path));
      return true;
    } catch (error) {
      if (isAbsence(error)) return false;
      throw error;
    }
  };
  return { ...turns, open, isThere, look: (path) => statWithoutCache({ ...turns, open }, path) };
}

/**
 * Wraps `calls` of a client that caches absences. The absence of the directory itself may be cached
 * too: then its parent is opened first, and so on.
 */
export function openingDirectories(calls: FileCalls): FileCalls {
  return checkingAbsences(calls, async (path, wary) => {
    const directory = dirname(path);
    return directory !== path && (await tryOpening(wary, directory));
  });
}
