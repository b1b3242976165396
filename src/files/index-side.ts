// IndexSide: the index of a tree as one process has it. The operations of the tree report their
// changes to it, and all tasks of the process share it.
import type { PathHold } from "../locks/path/path-hold.ts";
import { Loops } from "../part/loop.ts";
import type { NewChange } from "./change-log/change-record.ts";
import { Derived } from "./documents/derived.ts";
import type { DerivedIndex } from "./model/derived-index.ts";
import type { Change, FileOperations, FilesOptions } from "./model/file-tree.ts";
import type { IndexQueue } from "./model/index-queue.ts";
import { IndexWork, type IndexWorkOptions } from "./queue/index-work.ts";
import { LockWaits } from "./queue/lock-waits.ts";
import type { TaskContext } from "./queue/task-context.ts";
import { TaskQueue } from "./queue/task-queue.ts";
import { UserFunctions } from "./queue/user-functions.ts";
import { Follower } from "./search/follower.ts";
import { Sidecars } from "./sidecars/sidecars.ts";
import type { Tree } from "./tree/tree.ts";

export type IndexSideOptions = FilesOptions & IndexWorkOptions;

export class IndexSide implements IndexQueue, TaskContext {
  /** False if this process neither indexes nor summarizes. */
  readonly isOn: boolean;
  readonly derived: Derived;
  readonly follower: Follower;
  readonly functions: UserFunctions;
  readonly queue: TaskQueue;
  readonly waits: LockWaits = new LockWaits();
  readonly sidecars: Sidecars;
  readonly loops: Loops;
  readonly work: IndexWork;
  readonly operations: () => Pick<FileOperations, "write">;
  /** The index of all processes, if the user passed one. */
  readonly #sharedIndex: DerivedIndex | undefined;

  /**
   * `operations` returns the tree's own operations: summaries and memories are written through
   * them.
   */
  constructor(tree: Tree, operations: () => Pick<FileOperations, "write">, options: IndexSideOptions) {
    const { clock } = tree.ground.ports;
    const index = options.index === false ? undefined : options.index;
    this.#sharedIndex = index?.isShared === true ? index : undefined;
    this.functions = new UserFunctions(clock, options);
    this.isOn = this.functions.has("index") || this.functions.has("summarize");
    this.operations = operations;
    this.derived = new Derived(tree);
    this.follower = new Follower(this.derived, index);
    this.queue = new TaskQueue(tree, options.leaseMs);
    this.loops = new Loops(clock, tree.root);
    this.sidecars = new Sidecars(this);
    this.work = new IndexWork(this, this.#sharedIndex, options);
  }

  async hide({ from, path, number }: Change): Promise<void> {
    const gone = from ?? path;
    // A shared index must be updated even by a process that has never searched.
    if (this.#sharedIndex !== undefined) await this.#sharedIndex.remove(gone);
    else await this.follower.hide(gone, number);
  }

  /** The log worker reads the change from the log, so only the lock of an `add` needs a ticket. */
  async enqueue({ number }: Change, { token }: { readonly token?: string | undefined } = {}): Promise<string> {
    if (token !== undefined) return await this.queue.publishChange(number, { token });
    this.work.log.wake();
    return "";
  }

  async indexWithin(change: Change, hold: PathHold): Promise<string> {
    try {
      await this.work.worker.index(change, { signal: hold.signal });
      return "";
    } catch {
      // The files are added, so the call must not fail: a worker retries the indexing, and gives up
      // after a few attempts.
      return await this.queue.publishChange(change.number);
    }
  }

  async isIndexed(path: string, stamp: string): Promise<boolean> {
    if (!this.functions.has("index")) return false;
    if (this.follower.engine?.find(path)?.stamp === stamp) return true;
    const newest = await this.derived.documents.findNewest(path);
    return newest?.stamp === stamp && newest.text !== undefined;
  }

  async announce(change: NewChange): Promise<Change> {
    const announced = await this.derived.tree.changes.append(change);
    this.work.log.wake();
    return announced;
  }

  onProgress(documents: number): void {
    this.work.keeper.noteDocuments(documents);
    this.loops.progressed();
  }
}
