// What work waits for, path by path: as long as it does, a difference between a file and its document says nothing.
import { isWithin } from "../../format/path-key.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { Follower } from "./follower.ts";

/** Whether work on a path, or on a directory above it, waits now. Beyond so many changes it is taken to wait for all. */
const changesMax = 10_000;

export async function findWaiting(changes: ChangeLog, follower: Follower): Promise<(path: string) => boolean> {
  const pending = follower.pendingUpTo(await changes.last());
  if (pending.length > changesMax) return () => true;
  const concerned = new Set<string>();
  for (const number of pending) {
    const change = await changes.find(number);
    // One that cannot be seen yet may be about anything.
    if (change === undefined) return () => true;
    for (const path of [change.path, change.from ?? change.path]) concerned.add(path);
  }
  return (path) => [...concerned].some((above) => isWithin(path, above));
}
