// Determines which mount a path is on, and if other machines can be behind it.
import { execFile } from "node:child_process";
import { readFile, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type { Volume } from "../../disk.ts";
import { findErrno, toDiskError } from "./errno.ts";
import { parseMountinfo, parseMountOutput, volumeAt } from "./mount-table.ts";

/**
 * Returns the volume of `path`, or of its nearest existing ancestor. It does not fail if the volume
 * cannot be determined: then the kind is "unknown".
 */
export async function findVolume(path: string, platform: NodeJS.Platform = process.platform): Promise<Volume> {
  const real = await realpathOfNearest(path);
  if (platform === "linux") return findOnLinux(real);
  if (platform === "darwin") return findOnMac(real);
  return platform === "win32" ? volumeOfWindowsPath(real) : unknownVolume;
}

/**
 * For Windows; written from its documentation and not run there. `realpath` turns a mapped drive
 * letter into its UNC path, so two leading backslashes mean a share. A drive letter does not count
 * as local: nothing here can distinguish an NTFS disk from a redirected folder.
 */
export function volumeOfWindowsPath(real: string): Volume {
  return real.startsWith("\\\\") ? { kind: "network", type: "unc", mountOptions: [] } : unknownVolume;
}

const unknownVolume: Volume = { kind: "unknown", type: "unknown", mountOptions: [] };

async function findOnLinux(real: string): Promise<Volume> {
  try {
    return volumeAt(real, parseMountinfo(await readFile("/proc/self/mountinfo", "utf8"))) ?? unknownVolume;
  } catch {
    // A sandbox without /proc: an unknown mount is a valid answer.
    return unknownVolume;
  }
}

/**
 * Not run on a Mac. Node's `statfs` is useless there (its type numbers are assigned at boot), so
 * this reads the mount table.
 */
async function findOnMac(real: string): Promise<Volume> {
  try {
    const { stdout } = await promisify(execFile)("/sbin/mount", { timeout: 10_000 });
    const volume = volumeAt(real, parseMountOutput(stdout));
    // The kernel's own "local" flag must agree: a local type without it is a disk image or a remote
    // device.
    if (volume?.kind === "local" && !volume.mountOptions.includes("local")) return { ...volume, kind: "unknown" };
    return volume ?? unknownVolume;
  } catch {
    // The command failed: an unknown mount is a valid answer.
    return unknownVolume;
  }
}

async function realpathOfNearest(path: string): Promise<string> {
  for (let candidate = path; ; candidate = dirname(candidate)) {
    try {
      return await realpath(candidate);
    } catch (error) {
      if (findErrno(error) !== "ENOENT" || dirname(candidate) === candidate)
        throw toDiskError(error, "find volume", path);
    }
  }
}
