// The calls for SMB: an absence is not believed before the directory was listed.
//
// A Linux client remembers for a second that a name was not there, whatever its mount options say, and answers from memory: a file that another machine had made
// meanwhile was missed 12 of 12 times. Whoever reads a file under a lock would take it for new, and write over what is in it. A listing makes the client forget: then it was found 12 of 12 times.
import { basename, dirname } from "node:path";
import { isAbsence, pooledCalls, type FileCalls } from "./file-calls.ts";

/** Those that open what is there. */
const opening: readonly unknown[] = ["r", "r+"];
/** A directory without end is given up on: then the first answer counts. */
const namesMax = 100_000;

/** `calls`, for tests. */
export function believingListings(calls: FileCalls): FileCalls {
  return {
    ...calls,
    open: async (path, flags, mode) => {
      try {
        return await calls.open(path, flags, mode);
      } catch (error) {
        if (!opening.includes(flags) || !isAbsence(error)) throw error;
        // Where it cannot be listed, it is absent for us.
        const names = await Promise.resolve(calls.list(dirname(path), namesMax)).catch((): string[] => []);
        if (names?.includes(basename(path)) !== true) throw error;
        return await calls.open(path, flags, mode);
      }
    },
  };
}

export const smbCalls: FileCalls = believingListings(pooledCalls);
