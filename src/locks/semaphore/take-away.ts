// Takes away what lies under the name of a lock, and only that: programs without a guard may put something else there at any moment.
import { hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { isSame, observe, type Observation, type Taken } from "./observe.ts";
import { removeLockDirectory, tempPathOf } from "./temp.ts";

/** How often a lock is put back that was moved by mistake, when its name is taken and free again meanwhile. */
const triesMax = 5;

/**
 * Moves what was just looked at to a name of our own, looks at it there, and calls `then`; the name is free by then unless
 * another process was faster. What turns out to be something else is put back at once. Undefined when that was so, or
 * nothing was there. Only under the guard.
 */
export async function takeAway<T>(
  ports: Ports,
  path: string,
  sight: Taken,
  then: () => Promise<T>,
): Promise<T | undefined> {
  const { disk } = ports;
  const away = tempPathOf(path, ports.random);
  const moved = await move(disk, path, away);
  if (moved.kind === "free") return undefined;
  if (!isSame(sight, moved)) {
    await putBack(disk, away, path, moved);
    return undefined;
  }
  try {
    return await then();
  } finally {
    await removeMoved(disk, away, moved);
  }
}

/** What was moved. */
async function move(disk: Disk, path: string, away: string): Promise<Observation> {
  let failure: unknown;
  try {
    await disk.rename(path, away);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") && !isOutcomeUnknown(error)) throw error;
    // A repeated request fails although the first one was done; what is there tells.
    failure = error;
  }
  let moved: Observation;
  try {
    moved = await observe(disk, away);
  } catch (error) {
    // It is not known what was moved, and so it may not stay away. The first error tells more.
    await putBack(disk, away, path).catch(() => undefined);
    throw error;
  }
  if (moved.kind === "free" && failure !== undefined && !hasErrno(failure, "ENOENT")) throw failure as Error;
  return moved;
}

/**
 * By a link, which overwrites nothing. A lock of ours that was made on the free name meanwhile does not count yet: its maker
 * looks under the guard, which this process holds, whether it still stands. So it has to go. A lock of another program
 * stays, and then two programs without a guard hold the lock: see the page of the format.
 */
async function putBack(disk: Disk, away: string, path: string, moved?: Taken): Promise<void> {
  for (let tries = 1; ; tries++) {
    let failure: unknown;
    try {
      await disk.link(away, path);
      break;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      failure = error;
    }
    const now = await observe(disk, path);
    if (now.kind === "free") {
      // No hard links here, or not for this user, or it is a directory: then what is moved back may overwrite, within a moment.
      if (hasErrno(failure, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) return await disk.rename(away, path);
    } else if (moved !== undefined && isSame(moved, now)) break;
    else if (now.record?.token !== undefined) await disk.unlink(path).catch(() => undefined);
    else if (!isOutcomeUnknown(failure)) break;
    if (tries >= triesMax) throw failure;
  }
  await removeMoved(disk, away, moved);
}

/** In nobody's way: if it cannot be removed now, the next sweep finds it. */
async function removeMoved(disk: Disk, away: string, moved: Taken | undefined): Promise<void> {
  if (moved?.form === "directory") await removeLockDirectory(disk, away);
  else await disk.unlink(away).catch(() => undefined);
}
