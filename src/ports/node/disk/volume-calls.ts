// Selects the calls for a volume: each kind of client of a share skips its server in its own way.
import type { Volume } from "../../disk.ts";
import { blockingCalls, pooledCalls, type FileCalls } from "./file-calls.ts";
import { windowsCalls } from "../windows/windows-calls.ts";
import { statWithoutCache } from "./uncached-stat.ts";
import { nfsCalls, openingDirectories } from "./nfs-calls.ts";
import { checkingAbsencesByListing, smbCalls } from "./smb-calls.ts";

const listing = checkingAbsencesByListing(pooledCalls);
const localOnWindows = windowsCalls(blockingCalls, { isShare: false });
/**
 * For clients that were never measured: it is unknown what they cache, so `look` lists the
 * directory. Exported for tests.
 */
export const otherCalls: FileCalls = { ...pooledCalls, look: (path) => statWithoutCache(listing, path) };
const sharedOnWindows = windowsCalls(otherCalls);

export function callsFor(volume: Volume, platform: NodeJS.Platform = process.platform): FileCalls {
  const isLocal = volume.kind === "local";
  if (platform === "win32") return isLocal ? localOnWindows : sharedOnWindows;
  if (isLocal) return blockingCalls;
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
