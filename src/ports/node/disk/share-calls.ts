// Which calls are used on a share: each kind of client has its own ways of not asking its server.
import type { Volume } from "../../disk.ts";
import { pooledCalls, type FileCalls } from "./file-calls.ts";
import { lookAnew } from "./fresh-look.ts";
import { nfsCalls, openingDirectories } from "./nfs-calls.ts";
import { believingListings, smbCalls } from "./smb-calls.ts";

const listing = believingListings(pooledCalls);
/**
 * For clients that were never measured: what they remember is not known, so a look lists the
 * directory. Exported for tests.
 */
export const otherCalls: FileCalls = { ...pooledCalls, look: (path) => lookAnew(listing, path) };

/** For a volume that is not local. */
export function callsFor(volume: Volume, platform: NodeJS.Platform = process.platform): FileCalls {
  const { type } = volume;
  if (platform !== "linux") return otherCalls;
  if (/^(cifs|smb)/.test(type)) return smbCalls;
  if (type !== "nfs4" && type !== "nfs") return otherCalls;
  // Only a client of NFS 4 can be handed a file.
  const calls = type === "nfs4" ? nfsCalls : pooledCalls;
  return remembersAbsences(volume) ? openingDirectories(calls) : calls;
}

/** As the kernel shows it: `lookupcache=all`, which is the default, is not shown. */
function remembersAbsences({ mountOptions }: Volume): boolean {
  return !mountOptions.some((option) => /^lookupcache=(pos|positive|none)$/.test(option));
}
