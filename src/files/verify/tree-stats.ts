// The statistics of a tree: its size, and the progress of indexing.
import type { Cancel } from "../../common.ts";
import { listIfThere } from "../../durable/publish/directory.ts";
import type { IndexSide } from "../index-side.ts";
import type { GivenUpWork, TreeStats } from "../model/file-tree.ts";
import { findGivenUp, type NamedGivenUp } from "../queue/given-up.ts";
import type { Tree } from "../tree/tree.ts";

/** Tasks beyond this number are omitted. */
const givenUpMax = 1000;

export async function findTreeStats(side: IndexSide, { signal }: Cancel): Promise<TreeStats> {
  const { derived, follower, functions } = side;
  const { tree, reader } = derived;
  let [files, bytes, odd] = [0, 0, 0];
  for await (const { directory, size } of reader.list("", { deep: true, signal, onProblem: () => odd++ }))
    if (!directory) [files, bytes] = [files + 1, bytes + size];
  const sessions = await sessionFiles(tree);
  const givenUp = givenUpOf(await findGivenUp(side));
  const changes = await tree.changes.last();
  if (functions.has("index")) await follower.refresh();
  const backlog = functions.has("index") ? follower.pendingUpTo(await tree.changes.last()).length : 0;
  return { files, bytes, odd, changes, backlog, givenUp, sessions: sessions.length };
}

/** Converts given-up tasks to what users see. */
export function givenUpOf(found: readonly NamedGivenUp[]): GivenUpWork[] {
  return found.slice(0, givenUpMax).map(({ task: { task }, path, reason }) => ({ task, path, reason }));
}

/** Returns the directories of all sessions. */
export async function sessionFiles({ disk, layout }: Tree): Promise<string[]> {
  return await listIfThere(disk, layout.sessions);
}
