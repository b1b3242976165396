// The calls for NFS: nothing is opened under a delegation, and an absence is not believed before
// the directory was opened.
//
// A server may hand a file that is read to the machine that reads it, and take it back when another
// machine wants to link, rename or remove it. From a machine that sleeps or is cut off it cannot be
// taken back before that machine's lease at the server is over (90 s by default), and the clients
// that wait ask at longer and longer intervals: a lock that is free was measured to stay blocked
// for 45 s. A Linux client asks for no delegation when a file is opened for direct I/O, which for a
// small file costs nothing.
//
// A client remembers for up to half a minute that a name was not there, unless it is mounted with
// `lookupcache=pos` or `none`: a file that another machine had made meanwhile was missed 8 of 8
// times on two servers, and found 8 of 8 times when its directory had been opened in between.
// Opening a directory makes the client compare it with the server.
import { constants } from "node:fs";
import { dirname } from "node:path";
import { findErrno } from "./errno.ts";
import { forReading, isAbsence, pooledCalls, type FileCalls } from "./file-calls.ts";
import { lookAnew, tryOpening } from "./fresh-look.ts";
import { takingTurns } from "./open-turns.ts";
import { believingNoAbsence } from "./remembered-absence.ts";

const { O_RDWR, O_CREAT, O_EXCL } = constants;
const noDelegation = constants.O_DIRECT ?? 0;
/**
 * Flags that read. A file that is only written is never delegated; one that a machine makes, writes
 * and reads would be.
 */
const readingFlags: Readonly<Record<string, number>> = { "r+": O_RDWR, "wx+": O_RDWR | O_CREAT | O_EXCL };

/** Of NFS 4 where the client remembers no absence. Exported for tests. */
export const nfsCalls: FileCalls = nfsCallsOver(pooledCalls);

/** Exported for tests. */
export function nfsCallsOver(calls: FileCalls): FileCalls {
  // `openBulk` stays as it is: a file that is read in bulk may be lent (decision 59).
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
      // A directory, which is never delegated, and has no state that opens and closes could mix up.
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
  return { ...turns, open, isThere, look: (path) => lookAnew({ ...turns, open }, path) };
}

/**
 * `calls`, of a client that remembers absences. The directory's own absence may be remembered too:
 * then its directory is opened first, and so on.
 */
export function openingDirectories(calls: FileCalls): FileCalls {
  return believingNoAbsence(calls, async (path, wary) => {
    const directory = dirname(path);
    return directory !== path && (await tryOpening(wary, directory));
  });
}
