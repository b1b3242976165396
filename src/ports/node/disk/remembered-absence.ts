// Calls that do not believe an absence which the client of a share may only remember.
//
// A client remembers that a name was not there, and answers from memory although another machine
// has made it since. A process that reads a file under a lock would take it for new, and write over
// what is in it. How a client is made to forget differs: see the calls of each share.
import { isAbsence, type FileCalls } from "./file-calls.ts";
import { lookAnew } from "./fresh-look.ts";

/** Flags that open an existing file. */
const opening: readonly unknown[] = ["r", "r+"];

/**
 * Makes the client look `path` up anew. False when that is not worth it: nothing more can be found
 * out. `calls` believe no absence themselves.
 */
export type Renewal = (path: string, calls: FileCalls) => Promise<boolean>;

export function believingNoAbsence(calls: FileCalls, renew: Renewal): FileCalls {
  const wary: FileCalls = {
    ...calls,
    open: async (path, flags, mode) => {
      try {
        return await calls.open(path, flags, mode);
      } catch (error) {
        if (!opening.includes(flags) || !isAbsence(error) || !(await renew(path, wary))) throw error;
        return await calls.open(path, flags, mode);
      }
    },
    openBulk: async (path) => {
      try {
        return await calls.openBulk(path);
      } catch (error) {
        if (!isAbsence(error) || !(await renew(path, wary))) throw error;
        return await calls.openBulk(path);
      }
    },
    // A directory is such a name, too: a key or a box that another machine has made since.
    listSome: async (path, count) => {
      try {
        return await calls.listSome(path, count);
      } catch (error) {
        if (!isAbsence(error) || !(await renew(path, wary))) throw error;
        return await calls.listSome(path, count);
      }
    },
    look: (path) => lookAnew(wary, path),
  };
  return wary;
}
