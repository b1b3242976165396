// TaskContext: everything that the tasks of one process share.
import type { NewChange } from "../change-log/change-record.ts";
import type { Derived } from "../documents/derived.ts";
import type { Change, FileOperations } from "../model/file-tree.ts";
import type { LockWaits } from "./lock-waits.ts";
import type { Sidecars } from "../sidecars/sidecars.ts";
import type { TaskQueue } from "./task-queue.ts";
import type { UserFunctions } from "./user-functions.ts";

export interface TaskContext {
  readonly derived: Derived;
  readonly functions: UserFunctions;
  readonly queue: TaskQueue;
  readonly waits: LockWaits;
  readonly sidecars: Sidecars;
  /** The tree itself: summaries and memories are written through it. */
  readonly operations: () => Pick<FileOperations, "write">;
  /** Announces a change that no operation makes: the current content must be indexed. */
  announce(change: NewChange): Promise<Change>;
  /** Called when work is done, with the number of documents made. */
  onProgress(documents: number): void;
}
