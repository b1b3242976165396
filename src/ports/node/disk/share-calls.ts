// Selects the calls for a share: each kind of client skips its server in its own way.
import type { Volume } from "../../disk.ts";
import { pooledCalls, type FileCalls } from "./file-calls.ts";
import { statWithoutCache } from "./uncached-stat.ts";
import { nfsCalls, openingDirectories } from "./nfs-calls.ts";
import { checkingAbsencesByListing, smbCalls } from "./smb-calls.ts";

const listing = checkingAbsencesByListing(pooledCalls);
/**
 * For clients that were never measured: it is unknown what they cache, so `look` lists the
 * directory. Exported for tests.
 */
export const otherCalls: FileCalls = { ...pooledCalls, look: (path) => statWithoutCache(listing, path) };

/** For a volume that is not local. */
export function callsFor(volume: Volume, platform: NodeJS.Platform = process.platform): FileCalls {
  const { type } = volume;
  if (platform !== "linux") return otherCalls;
  if (/^(cifs|smb)/.test(type)) return smbCalls;
  if (type !== "nfs4" && type !== "nfs") return otherCalls;
  // Only an NFS 4 client can be given a delegation.
  const calls = type === "nfs4" ? nfsCalls : pooledCalls;
  return remembersAbsences(volume) ? openingDirectories(calls) : calls;
}

/** True unless a `lookupcache` option rules it out. The kernel does not show the default, `lookupcache=all`. */
function remembersAbsences({ mountOptions }: Volume): boolean {
  return !mountOptions.some((option) => /^lookupcache=(pos|positive|none)$/.test(option));
}
