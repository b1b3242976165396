// The calls for SMB: an absence is not believed before the directory was listed.
//
// A Linux client remembers for a second that a name was not there, whatever its mount options say,
// and answers from memory: a file that another machine had made meanwhile was missed 12 of 12
// times. A listing makes the client forget: then it was found 12 of 12 times. It is read page by
// page until the name comes, however long the directory is.
import { basename, dirname } from "node:path";
import { isAbsence, pooledCalls, type FileCalls } from "./file-calls.ts";
import { believingNoAbsence } from "./remembered-absence.ts";

/** `calls`, for tests. */
export function believingListings(calls: FileCalls): FileCalls {
  return believingNoAbsence(calls, isListed);
}

async function isListed(path: string, calls: FileCalls): Promise<boolean> {
  const directory = dirname(path);
  if (directory === path) return false;
  const wanted = folded(basename(path));
  const list = async (): Promise<boolean> => await calls.hasName(directory, (name) => folded(name) === wanted);
  try {
    return await list();
  } catch (error) {
    // The absence of the directory may only be remembered, too. Where it cannot be listed for
    // another reason, the path counts as absent.
    if (!isAbsence(error) || !(await isListed(directory, calls))) return false;
  }
  return await list().catch(() => false);
}

/**
 * Most servers take `A` and `a` for one name; where they are two, one open is asked for in vain.
 */
function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

export const smbCalls: FileCalls = believingListings(pooledCalls);
