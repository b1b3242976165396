// Determines which mount a path is on, and if other machines can be behind it.
import { execFile } from "node:child_process";
import { readFile, realpath } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { promisify } from "node:util";
import type { Volume } from "../../disk.ts";
import { findErrno, toDiskError } from "./errno.ts";
import { findOnWindows } from "../windows/drive-volume.ts";
import { parseMountinfo, parseMountOutput, volumeAt } from "./mount-table.ts";

/**
 * Returns the volume of `path`, or of its nearest existing ancestor. It does not fail if the volume
 * cannot be determined: then the kind is "unknown", unless the user says that it is local.
 */
export async function findVolume(path: string, platform: NodeJS.Platform = process.platform): Promise<Volume> {
  const real = await realpathOfNearest(path);
  const found = await findFor(platform, real);
  return found.kind === "unknown" && (await isVouchedFor(real)) ? vouched(found) : found;
}

async function findFor(platform: NodeJS.Platform, real: string): Promise<Volume> {
  if (platform === "linux") return findOnLinux(real);
  if (platform === "darwin") return findOnMac(real);
  return platform === "win32" ? { ...(await findOnWindows(real)), hasWindowsNames: true } : unknownVolume;
}

/**
 * True if `real` is in one of the folders of `HOLDFAST_LOCAL`, which are separated as in PATH: the
 * user states that no other machine can reach them. A network volume stays one.
 */
async function isVouchedFor(real: string): Promise<boolean> {
  for (const folder of (process.env["HOLDFAST_LOCAL"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const rest = relative(await realpath(folder).catch(() => resolve(folder)), real);
    if (rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest)) return true;
  }
  return false;
}

function vouched(volume: Volume): Volume {
  return { ...volume, kind: "local", type: `${volume.type}, local by HOLDFAST_LOCAL` };
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
