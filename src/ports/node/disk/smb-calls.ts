// The calls for SMB: they trust an absence only after listing the directory.
//
// A Linux client caches for a second that a name was absent, whatever its mount options. A file
// that another machine had made meanwhile was missed 12 of 12 times. A listing clears that cache:
// then it was found 12 of 12 times. The listing is read page by page until the name appears,
// however long the directory is.
import { basename, dirname } from "node:path";
import { isAbsence, pooledCalls, type FileCalls } from "./file-calls.ts";
import { checkingAbsences } from "./remembered-absence.ts";

/** Exported for tests, which pass their own `calls`. */
export function checkingAbsencesByListing(calls: FileCalls): FileCalls {
  return checkingAbsences(calls, isListed);
}

async function isListed(path: string, calls: FileCalls): Promise<boolean> {
  const directory = dirname(path);
  if (directory === path) return false;
  const wanted = folded(basename(path));
  const list = async (): Promise<boolean> => await calls.hasName(directory, (name) => folded(name) === wanted);
  try {
    return await list();
  } catch (error) {
    // The absence of the directory may be cached too. If it cannot be listed for another reason,
    // the path counts as absent.
    if (!isAbsence(error) || !(await isListed(directory, calls))) return false;
  }
  return await list().catch(() => false);
}

/** Most servers treat `A` and `a` as one name; where they are two, one extra open fails. */
function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

export const smbCalls: FileCalls = checkingAbsencesByListing(pooledCalls);
