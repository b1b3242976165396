// The second half of a session's commit. Its task makes the archive if the committing process died
// before that, and writes the memories of the archive into the tree.
import type { TaskContext } from "../queue/task-context.ts";
import type { SessionTask } from "../queue/task.ts";
import type { Tree } from "../tree/tree.ts";
import { SessionLog } from "./session-log.ts";
import type { ArchiveRecord } from "./session-record.ts";

/** Opens the log of a session. */
export async function openSession({ ground, layout }: Tree, session: string): Promise<SessionLog> {
  return await SessionLog.open(ground.staging, layout.sessions, session);
}

/**
 * Runs the task of a commit. The task holds everything that the archive needs, so a worker that
 * comes first makes the archive. No lock is held while the user's function runs. It may run again
 * after a crash: the same archive yields the same files.
 */
export async function extractArchive(
  { derived, functions, operations }: Pick<TaskContext, "derived" | "functions" | "operations">,
  task: SessionTask,
  signal: AbortSignal,
): Promise<{ readonly memories: number } | "replaced"> {
  const log = await openSession(derived.tree, task.session);
  // Another commit was faster, and has these messages.
  if (!(await log.archive(task.archive, recordOf(task)))) return "replaced";
  const memories = await functions.memories(await log.get(task.archive), signal);
  for (const { path, text } of memories) await operations().write(path, text, { signal });
  return { memories: memories.length };
}

export function recordOf({ upTo, commit, user, summary }: SessionTask): ArchiveRecord {
  return {
    upTo,
    commit,
    ...(user === undefined ? {} : { user }),
    ...(summary === undefined ? {} : { summary }),
  };
}
