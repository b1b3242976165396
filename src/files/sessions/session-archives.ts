// The second half of a session's commit: a task that archives if the committing process died before, and that writes
// the memories of the archive into the tree.
import type { Staging } from "../../durable/publish/staging.ts";
import type { FileOperations } from "../model/file-tree.ts";
import type { SessionTask } from "../queue/task.ts";
import type { UserFunctions } from "../queue/user-functions.ts";
import { SessionLog } from "./session-log.ts";
import type { ArchiveRecord } from "./session-record.ts";

export interface SessionArchivesParts {
  readonly staging: Staging;
  /** The directory of all sessions. */
  readonly directory: string;
  readonly functions: UserFunctions;
  /** Of the tree. */
  readonly operations: () => Pick<FileOperations, "write">;
}

export class SessionArchives {
  readonly #parts: SessionArchivesParts;

  constructor(parts: SessionArchivesParts) {
    this.#parts = parts;
  }

  async open(session: string): Promise<SessionLog> {
    return await SessionLog.open(this.#parts.staging, this.#parts.directory, session);
  }

  /**
   * The task of a commit holds all that the archive needs, so a worker that comes first makes the archive. No lock is
   * held while the user's function runs. Again after a crash: the same archive gives the same files.
   */
  async extract(task: SessionTask, signal: AbortSignal): Promise<{ readonly memories: number } | "replaced"> {
    const { functions, operations } = this.#parts;
    const log = await this.open(task.session);
    // Another commit was quicker, and has these messages.
    if (!(await log.archive(task.archive, recordOf(task)))) return "replaced";
    const memories = await functions.memories(await log.get(task.archive), signal);
    for (const { path, text } of memories) await operations().write(path, text, { signal });
    return { memories: memories.length };
  }
}

export function recordOf({ upTo, commit, user, summary }: SessionTask): ArchiveRecord {
  return {
    upTo,
    commit,
    ...(user === undefined ? {} : { user }),
    ...(summary === undefined ? {} : { summary }),
  };
}
