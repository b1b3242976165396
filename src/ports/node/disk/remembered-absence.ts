// Wraps calls so that they do not trust an absence that the client of a share may have cached.
//
// A client caches that a name was absent, and answers from that cache although another machine has
// made the file since. A process that reads a file under a lock would take it for new and overwrite
// its content. Clients forget in different ways: see the calls of each share.
import { isAbsence, type FileCalls } from "./file-calls.ts";
import { statWithoutCache } from "./uncached-stat.ts";

/** Flags that open an existing file. */
const opening: readonly unknown[] = ["r", "r+"];

/**
 * Makes the client look `path` up again. False if another lookup would find nothing new. `calls`
 * trust no cached absence themselves.
 */
export type Renewal = (path: string, calls: FileCalls) => Promise<boolean>;

export function checkingAbsences(calls: FileCalls, renew: Renewal): FileCalls {
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
    // A directory can be such a name too: a key or a box that another machine has made since.
    listSome: async (path, count) => {
      try {
        return await calls.listSome(path, count);
      } catch (error) {
        if (!isAbsence(error) || !(await renew(path, wary))) throw error;
        return await calls.listSome(path, count);
      }
    },
    look: (path) => statWithoutCache(wary, path),
  };
  return wary;
}
