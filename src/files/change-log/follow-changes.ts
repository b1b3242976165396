// Follows the change log. It yields each change after the hold that announced it has ended, so that
// the follower finds the final state.
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { Deadline } from "../../durable/wait/deadline.ts";
import { isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { isWithin } from "../../format/path-key.ts";
import { indexingTag } from "../tree/layout.ts";
import type { Change } from "../model/file-tree.ts";
import type { Tree } from "../tree/tree.ts";

/** How often a process that cannot take locks checks those of others. */
const lookEveryMs = 100;

export interface FollowOptions {
  readonly after: number;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the iteration with its reason. */
  readonly closed: AbortSignal;
}

/**
 * Yields all changes after a number, in order, each once, and then waits for new ones. Never skips
 * one.
 */
export async function* followChanges(
  tree: Tree,
  { after, signal, closed }: FollowOptions,
): AsyncGenerator<Change, void, undefined> {
  const deadline = new Deadline(tree.ground.ports.clock, { signal, closed, timedOut: () => undefined });
  try {
    for (let number = after; ;)
      for (const change of await readOrWait(tree, number, deadline)) {
        await untilUnlocked(tree, change, deadline);
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

/** True if a change concerns `directory` or anything below it. */
export function isUnder({ path, from }: Change, directory: string): boolean {
  const concerns = (changed: string): boolean => isWithin(changed, directory) || isWithin(directory, changed);
  return concerns(path) || (from !== undefined && concerns(from));
}

/**
 * Waits until the process that announced the change has released its paths. It acquires a shared
 * lock on them, which also completes what a dead process committed.
 */
export async function untilUnlocked(
  tree: Tree,
  { path, from }: Change,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const requests = [path, ...(from === undefined ? [] : [from])].map((each) => ({ path: each, shared: true }));
  for (;;) {
    signal.throwIfAborted();
    try {
      const hold = await tree.locks.acquireAll(requests, { timeoutMs: Infinity, signal, tag: indexingTag });
      await hold.release();
      return;
    } catch (error) {
      // Another program put a link there that is dangling or leads out of the tree: nothing of the
      // change is left.
      if (isHoldfastError(error, "INVALID_PATH")) return;
      if (isUnwritable(error)) return await untilSeenFree(tree, [path, from ?? path], signal);
      // This process slept past its lease while it waited: try again.
      if (!isHoldfastError(error, "LOCK_LOST")) throw error;
    }
  }
}

/**
 * For a process that cannot write and therefore takes no lock: polls until no exclusive lock covers
 * the paths.
 */
async function untilSeenFree(tree: Tree, paths: readonly string[], signal: AbortSignal): Promise<void> {
  const { clock } = tree.ground.ports;
  const isHeld = async (): Promise<boolean> =>
    (await tree.locks.list()).some(
      (held) => !held.shared && paths.some((path) => isWithin(path, held.path) || isWithin(held.path, path)),
    );
  while (await isHeld()) await clock.sleep(lookEveryMs, { signal });
}

async function readOrWait({ changes, layout, ground }: Tree, after: number, deadline: Deadline): Promise<Change[]> {
  const waiter = new ChangeWaiter(ground);
  let found: Change[] = [];
  const isOver = async (): Promise<boolean> => {
    found = await changes.readAfter(after);
    return found.length > 0;
  };
  while ((await waiter.wait(layout.changeBlock(after + 1), isOver, deadline)) === "poll");
  return found;
}
