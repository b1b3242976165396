// What lies beside a lock for a moment: a record that is not yet under the lock's name, a probe, a directory on its way out.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Random } from "../../ports/random.ts";
import { findFate } from "./owner.ts";
import { observe, recordPathOf } from "./observe.ts";

/** 128 random bits: nobody can put something there before us, and two containers with one pid do not meet. */
export function tempPathOf(lockPath: string, random: Random): string {
  return `${lockPath}.${randomName(random.bytes(16))}.tmp`;
}

/** What nobody will come back for goes after this long at the latest. Longer than anybody takes between making and using one. */
const orphanMs = 3_600_000;

/** Removes what the dead have left beside a lock; true when there was something. To take one from the living does no harm: they make another. */
export async function sweepTemps(ports: Ports, lockPath: string): Promise<boolean> {
  let removed = false;
  for (const path of await findTemps(ports.disk, lockPath)) {
    if ((await isOrphan(ports, path, lockPath)) && (await removeTemp(ports.disk, path))) removed = true;
  }
  return removed;
}

async function removeTemp(disk: Disk, path: string): Promise<boolean> {
  if ((await disk.stat(path)).kind === "directory") return await removeLockDirectory(disk, path);
  await unlinkIfThere(disk, path);
  return true;
}

/** One on its way out, with its record and nothing else: what somebody put into the lock while it was held stays, and so does the directory. */
export async function removeLockDirectory(disk: Disk, path: string): Promise<boolean> {
  try {
    await unlinkIfThere(disk, recordPathOf(path, "directory"));
    await disk.rmdir(path);
    return true;
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}

async function findTemps(disk: Disk, lockPath: string): Promise<string[]> {
  const directory = parentOf(lockPath);
  const prefix = lockPath.slice(lockPath.lastIndexOf("/") + 1);
  const names = await disk.list(directory);
  return names
    .filter((name) => name.startsWith(`${prefix}.`) && /^\.[0-9a-z]{26}\.tmp$/.test(name.slice(prefix.length)))
    .map((name) => `${directory === "/" ? "" : directory}/${name}`);
}

async function isOrphan(ports: Ports, path: string, lockPath: string): Promise<boolean> {
  const sight = await observe(ports.disk, path);
  if (sight.kind === "free") return false;
  const fate = sight.record && findFate(ports, sight.record);
  if (fate !== undefined) return fate === "dead";
  // A record of another machine or none at all: by its age.
  return (await findAgeMs(ports, path, lockPath)) > orphanMs;
}

/**
 * How long ago `path` was written, beside a file that is made now: both are stamped by the same clock, whoever's that is. 0 when it cannot be found out: it
 * went away meanwhile, or nothing can be made here. No evidence of age is none.
 */
export async function findAgeMs({ disk, random }: Ports, path: string, lockPath: string): Promise<number> {
  const probe = tempPathOf(lockPath, random);
  try {
    await disk.createFile(probe, new Uint8Array(), { sync: false, mode: 0o600 });
    const [probed, found] = [await disk.stat(probe), await disk.stat(path)];
    return Math.max(0, probed.mtimeMs - found.mtimeMs);
  } catch (error) {
    if (isHoldfastError(error)) return 0;
    throw error;
  } finally {
    // If it stays, the next sweep finds it.
    await disk.unlink(probe).catch(() => undefined);
  }
}
