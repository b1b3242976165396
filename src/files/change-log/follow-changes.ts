// Following the change log: each change when the hold that announced it is over, so that the follower finds the final
// state, or nothing new.
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { Deadline } from "../../durable/wait/deadline.ts";
import { isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { isWithin } from "../../format/path-key.ts";
import { indexingTag } from "../tree/layout.ts";
import type { Change } from "../model/file-tree.ts";
import type { TreePlace } from "../tree/tree-place.ts";

/** So often a process that can take no lock looks for those of others. */
const lookEveryMs = 100;

export interface FollowOptions {
  readonly after: number;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal | undefined;
  /** Ends it with its reason. */
  readonly closed: AbortSignal;
}

/** All changes after a number, in order, each once, and then those that come. Never skips one. */
export async function* followChanges(
  place: TreePlace,
  { after, signal, closed }: FollowOptions,
): AsyncGenerator<Change, void, undefined> {
  const deadline = new Deadline(place.ground.ports.clock, { signal, closed, timedOut: () => undefined });
  try {
    for (let number = after; ;)
      for (const change of await readOrWait(place, number, deadline)) {
        await untilOver(place, change, deadline);
        yield change;
        deadline.throwIfOver();
        number = change.number;
      }
  } catch (error) {
    if (!signal?.aborted || error !== signal.reason) throw error;
  } finally {
    deadline.cancel();
  }
}

/** Whether a change concerns what lies at `directory` or below it. */
export function isUnder({ path, from }: Change, directory: string): boolean {
  const concerns = (changed: string): boolean => isWithin(changed, directory) || isWithin(directory, changed);
  return concerns(path) || (from !== undefined && concerns(from));
}

/**
 * Waits until the process that announced the change holds its paths no more: by a shared lock, which also completes
 * what a dead process has committed.
 */
export async function untilOver(
  place: TreePlace,
  { path, from }: Change,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const requests = [path, ...(from === undefined ? [] : [from])].map((each) => ({ path: each, shared: true }));
  for (;;) {
    signal.throwIfAborted();
    try {
      const locks = await place.locks();
      const hold = await locks.acquireAll(requests, { timeoutMs: Infinity, signal, tag: indexingTag });
      await hold.release();
      return;
    } catch (error) {
      if (isUnwritable(error)) return await untilSeenFree(place, [path, from ?? path], signal);
      // The process slept while it waited, and waits again.
      if (!isHoldfastError(error, "LOCK_LOST")) throw error;
    }
  }
}

/** For a process that can write nothing, and so can take no lock: it looks whether one is held there. */
async function untilSeenFree(place: TreePlace, paths: readonly string[], signal: AbortSignal): Promise<void> {
  const { clock } = place.ground.ports;
  const isHeld = async (): Promise<boolean> =>
    (await (await place.locks()).list()).some(
      (held) => !held.shared && paths.some((path) => isWithin(path, held.path) || isWithin(held.path, path)),
    );
  while (await isHeld()) await clock.sleep(lookEveryMs, { signal });
}

async function readOrWait(
  { changes, layout, ground }: TreePlace,
  after: number,
  deadline: Deadline,
): Promise<Change[]> {
  const waiter = new ChangeWaiter(ground.ports);
  let found: Change[] = [];
  const isOver = async (): Promise<boolean> => {
    found = await changes.readAfter(after);
    return found.length > 0;
  };
  while ((await waiter.wait(layout.changeBlock(after + 1), isOver, deadline)) === "poll");
  return found;
}
