// Which calls a share is asked by: each kind of client has its own ways not to ask its server.
import type { Volume } from "../disk.ts";
import { pooledCalls, type FileCalls } from "./file-calls.ts";
import { nfsCalls } from "./nfs-calls.ts";
import { smbCalls } from "./smb-calls.ts";

/** Of what is not local. */
export function callsFor({ type }: Volume, platform: NodeJS.Platform = process.platform): FileCalls {
  if (platform !== "linux") return pooledCalls;
  if (type === "nfs4") return nfsCalls;
  return /^(cifs|smb)/.test(type) ? smbCalls : pooledCalls;
}
