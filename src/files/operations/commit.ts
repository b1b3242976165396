// A change of the tree, from the call to its answer. write, update, remove, move and add differ only
// in the draft that they pass to `commit`:
//
//   plan      resolve the paths and stat them: which locks are needed        target.ts
//   lock      acquire the locks                                              locks/path
//   plan      again, under the locks; if it needs other locks now, start over
//   stage     put the new content below redo/, synced; beside it the
//             record of the change, synced                                   locks/redo/draft.ts
//   announce  link the record under the next change number, synced           change-log/change-log.ts
//   hide      drop what the change takes away from the index
//   commit    append the steps to the lock table, synced: from here on
//             they will happen                                               locks/redo/draft.ts
//   apply     rename the content to its target, sync the directory           locks/redo/apply.ts
//   release   release the locks; an `add` transfers its lock to the index
//   wake      wake the index worker                                          index-side.ts
//
// The announcement precedes the commit: if the process dies in between, the log has a change without
// effect. In the other order a change would be missing from the log, because the process that
// completes it does not know the log.
import { leftMsOf } from "../../durable/wait/deadline.ts";
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { LockRequest } from "../../locks/path/path-locks.ts";
import type { LocatedRequest, TablePathLocks } from "../../locks/path/table-path-locks.ts";
import type { DraftOptions, RedoDraft } from "../../locks/redo/draft.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { Change, FileOptions } from "../model/file-tree.ts";
import type { IndexQueue } from "../model/index-queue.ts";
import { tagPrefix } from "../tree/layout.ts";
import type { TreeReader } from "../tree/tree-reader.ts";
import type { Tree } from "../tree/tree.ts";
import { busyError, isOwnIndexing } from "./busy.ts";

/** If the plan changes this often, too many processes compete for the tree. */
const plansMax = 1000;
/**
 * How long a caller waits for its own index worker, which locks a path for a few milliseconds to
 * see that a change is over.
 */
const glanceMsMax = 250;

/** The parts that every operation works with. */
export interface OperationContext {
  readonly tree: Tree;
  readonly reader: TreeReader;
  /** Undefined if this process neither indexes nor summarizes. */
  readonly queue: IndexQueue | undefined;
  /** How long a call waits for its locks, unless it passes its own time. */
  readonly timeoutMs: number;
}

/** One call of a user, as its operation gets it. */
export interface OperationCall extends FileOptions {
  /** "write", for messages. */
  readonly name: string;
  /** As the caller passed it. */
  readonly path: string;
}

/** An operation's findings, and the locks that it needs. */
export interface OperationPlan {
  readonly requests: readonly (LocatedRequest & Required<Pick<LockRequest, "mode">>)[];
}

/** Begins steps that are committed together. Default: one step. */
export type BeginSteps = (options?: DraftOptions) => Promise<RedoDraft>;

/** A change to be committed. */
export interface OperationDraft {
  readonly change: NewChange;
  /** Stages the steps. */
  readonly stage: (steps: RedoDraft) => Promise<unknown>;
  /** Default: one step. */
  readonly options?: DraftOptions;
  /** True if the change removes something from the index: it must not be found any more. */
  readonly takesAway: boolean;
  /**
   * True if `stage` waits for the disk only once, so that the record of the change can be staged at
   * the same time. Default false.
   */
  readonly isOneWait?: boolean;
  /** True if the lock is kept until the index has the change. Default false. */
  readonly isLockedUntilIndexed?: boolean;
  /** Called under the locks, when the change is durable. */
  readonly onDurable?: () => Promise<void>;
}

export interface Operation<P extends OperationPlan> {
  plan(): Promise<P>;
  /** Called under the locks of the plan. Returns undefined if nothing is to be changed. */
  draft(plan: P, begin: BeginSteps): Promise<OperationDraft | undefined>;
}

export interface CommittedOperation {
  readonly change: Change;
  /** Id of the indexing task that holds the lock now; "" for none. */
  readonly task: string;
}

/**
 * Commits the change of an operation. When it resolves, the change is done and durable; undefined
 * if there was nothing to change. Throws RESOURCE_BUSY, LOCK_LOST, OUTCOME_UNKNOWN, INDEX_FAILED,
 * and the errors of the operation.
 */
export async function commit<P extends OperationPlan>(
  context: OperationContext,
  call: OperationCall,
  operation: Operation<P>,
): Promise<CommittedOperation | undefined> {
  const { clock } = context.tree.ground.ports;
  const wait = { startMs: clock.monotonicMs(), timeoutMs: call.timeoutMs ?? context.timeoutMs };
  for (let plans = 1; plans <= plansMax; plans++) {
    const wanted = await operation.plan();
    const { locks, hold } = await lock(context, call, wanted, leftMsOf(clock, wait));
    const begun: RedoDraft[] = [];
    const begin: BeginSteps = async (options = { isSingle: true }) => {
      const steps = await locks.draft(hold, options);
      begun.push(steps);
      return steps;
    };
    let committed: CommittedOperation;
    let draft: OperationDraft | undefined;
    try {
      // Another process may have changed the tree before the locks were granted.
      const plan = await operation.plan();
      if (!needsSameLocks(plan, wanted)) continue;
      draft = await operation.draft(plan, begin);
      if (draft === undefined) return undefined;
      const change = await carryOut(context, draft, await begin(draft.options));
      await draft.onDurable?.();
      const task = draft.isLockedUntilIndexed === true ? await handOver(context, change, hold, call) : "";
      committed = { change, task };
    } catch (error) {
      // The staged files are gone: this process slept past its lease and was swept.
      if (hasErrno(error, "ENOENT", "ESTALE")) await hold.assertHeld();
      throw error;
    } finally {
      // Under a hold of the caller, uncommitted steps would otherwise last as long as that hold.
      for (const steps of begun) await steps.discard();
      // The commit counts. A lock that cannot be released now is released in the background.
      await hold.release().catch(() => undefined);
    }
    if (draft.isLockedUntilIndexed !== true) await wake(context, committed.change);
    return committed;
  }
  const message = `${call.name}: ${call.path} changed ${plansMax} times before its locks were granted. Nothing was done: try again.`;
  throw holdfastError("RESOURCE_BUSY", message, { path: call.path, blockedBy: [], worthWaiting: true });
}

/** Stages, announces, hides, commits and applies, in this order. */
async function carryOut(context: OperationContext, draft: OperationDraft, steps: RedoDraft): Promise<Change> {
  const { changes } = context.tree;
  const { change, stage, takesAway, isOneWait = false } = draft;
  if (!isOneWait) await stage(steps);
  const staging = changes.stage(change);
  try {
    await allEnded(isOneWait ? [stage(steps), staging] : [staging]);
    const announced = await changes.announce(await staging);
    if (takesAway) await hide(context, announced);
    await steps.commit();
    return announced;
  } finally {
    await staging.then(
      (staged) => changes.discard(staged),
      () => undefined,
    );
  }
}

async function lock(
  { tree }: OperationContext,
  { name, path, within, signal }: OperationCall,
  { requests }: OperationPlan,
  timeoutMs: number,
): Promise<{ readonly locks: TablePathLocks; readonly hold: PathHold }> {
  const locks = tree.locksFor(within);
  const tag = `${tagPrefix}${name}`;
  for (let leftMs = timeoutMs; ; leftMs = glanceMsMax)
    try {
      return { locks, hold: await locks.acquireLocated(requests, { within, signal, timeoutMs: leftMs, tag }) };
    } catch (error) {
      if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw busyError(name, path, error, undefined);
      const own = (await tree.ground.session()).holder.id;
      if (leftMs >= glanceMsMax || !isOwnIndexing(error, own)) throw busyError(name, path, error, own);
    }
}

async function hide({ queue }: OperationContext, change: Change): Promise<void> {
  try {
    await queue?.hide(change);
  } catch (error) {
    const path = change.from ?? change.path;
    const message = `The index could not drop ${path}, so the files were not changed. Repair the index, and try again.`;
    throw holdfastError("INDEX_FAILED", message, { path }, error);
  }
}

/**
 * Transfers the lock to the task that indexes the change, and returns the task's id. Without an
 * index, releases the lock.
 */
async function handOver(
  context: OperationContext,
  change: Change,
  hold: PathHold,
  { within }: OperationCall,
): Promise<string> {
  const { tree, queue } = context;
  if (queue === undefined) return "";
  // A hold within another one ends with it, and cannot be transferred to another process.
  if (within !== undefined) return await queue.indexWithin(change, hold);
  let token: string;
  try {
    token = await hold.transfer();
  } catch (error) {
    // The hold was lost. The commit counts, and the worker acquires its own lock.
    if (!isHoldfastError(error)) throw error;
    return await wake(context, change);
  }
  const task = await wake(context, change, token);
  // No worker gets the token: end the offer now.
  if (task === "") await tree.endOffer(token);
  return task;
}

/** Wakes the index worker. Never fails, because the change log has the change. */
async function wake({ queue }: OperationContext, change: Change, token?: string): Promise<string> {
  try {
    return (await queue?.enqueue(change, { token })) ?? "";
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return "";
  }
}

function needsSameLocks({ requests: one }: OperationPlan, { requests: other }: OperationPlan): boolean {
  return (
    one.length === other.length &&
    one.every(({ path, mode }, index) => other[index]?.path === path && other[index].mode === mode)
  );
}
