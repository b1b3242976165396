// Worker: processes the tasks of a queue, one delivery at a time.
import { isHoldfastError } from "../../errors.ts";
import type { Delivery } from "../../handoff/model/delivery.ts";
import type { DeadLetter } from "../../handoff/model/handoff.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { NewOutcome } from "../documents/outcomes.ts";
import type { Change } from "../model/file-tree.ts";
import { indexingTag } from "../tree/layout.ts";
import { extractArchive } from "../sessions/session-archives.ts";
import { isSidecar } from "../sidecars/sidecar-name.ts";
import type { Tree } from "../tree/tree.ts";
import {
  deathsAloneMax,
  deathsTogetherMax,
  earlierAttempts,
  setAsideReason,
  type EarlierAttempts,
} from "./given-up.ts";
import type { Indexer, IndexingOptions } from "./indexer.ts";
import { AllWorkersWaiting } from "./lock-waits.ts";
import { taskOf, type IndexTask, type Task } from "./task.ts";
import type { TaskContext } from "./task-context.ts";

/** How often a worker checks whether a full disk has room again. */
const roomPauseMs = { min: 100, max: 5_000 };
/** How often it checks which changes the last snapshot has. */
const snapshotLookMs = 2_000;

export class Worker {
  readonly #context: TaskContext;
  readonly #tree: Tree;
  readonly #indexer: Indexer;
  #inProgress = 0;
  /** How many of them wait for a lock, or for room on the disk. */
  #waiting = 0;
  #onlyWaits: (() => void) | undefined;
  /** How often the work of each ticket has failed before. */
  readonly #failures = new Map<string, number>();
  /** The position of the last known snapshot, and when it was checked. */
  #snapshot = { position: 0, lookedAtMs: -Infinity };

  constructor(context: TaskContext, indexer: Indexer) {
    this.#context = context;
    this.#tree = context.derived.tree;
    this.#indexer = indexer;
  }

  readonly handle = async (delivery: Delivery): Promise<unknown> => {
    const { waits } = this.#context;
    this.#inProgress++;
    try {
      const { failures, deaths } = await this.#earlierAttempts(delivery);
      this.#failures.set(delivery.id, failures);
      if (deaths >= deathsTogetherMax + deathsAloneMax) return await delivery.fail(setAsideReason(deaths));
      const done = await this.#together(deaths >= deathsTogetherMax, (isAlone) =>
        this.#orWaitForRoom(delivery, isAlone),
      );
      if (done === undefined) throw new AllWorkersWaiting("Another ticket is worked on alone.");
      waits.forget(delivery.id);
      this.#failures.delete(delivery.id);
      return done.result;
    } catch (error) {
      if (!(error instanceof AllWorkersWaiting)) throw error;
      await delivery.postpone({ delayMs: waits.nextPauseMs(delivery.id) });
      return undefined;
    } finally {
      this.#inProgress--;
      this.#tellIfOnlyWaiting();
    }
  };

  /** Returns how often this ticket's work had failed before the attempt that just failed. Call it once for each. */
  takeFailures(ticket: string): number {
    const failures = this.#failures.get(ticket) ?? 0;
    this.#failures.delete(ticket);
    return failures;
  }

  /**
   * Calls `call` as soon as no claimed delivery is being processed: all of them wait for a lock or
   * for room, perhaps forever.
   */
  whenOnlyWaiting(call: () => void): void {
    this.#onlyWaits = call;
    this.#tellIfOnlyWaiting();
  }

  /**
   * Waits while the disk is full, without counting an attempt: a full disk is not the task's fault.
   */
  async #orWaitForRoom(delivery: Delivery, isAlone: boolean): Promise<unknown> {
    const { clock } = this.#tree.ground.ports;
    for (let pauseMs = roomPauseMs.min; ; pauseMs = Math.min(roomPauseMs.max, 2 * pauseMs))
      try {
        return await this.#do(taskOf(delivery.meta), delivery.signal, isAlone);
      } catch (error) {
        if (!isHoldfastError(error, "DISK_FULL")) throw error;
        const sleep = (): Promise<void> => clock.sleep(pauseMs, { signal: delivery.signal, background: true });
        await this.#waitFor(() => (isAlone ? sleep() : this.#context.waits.latch.away(sleep)));
      }
  }

  /** Publishes the outcome of a given-up task, so that waiting callers learn of it. */
  async bury({ id, reason }: DeadLetter): Promise<void> {
    const found = await this.#context.queue.find(id);
    const task = found?.meta === undefined ? undefined : taskOf(found.meta);
    if (task?.task === "index") await this.giveUp(task.change, reason);
  }

  async giveUp(change: number, failed: string): Promise<void> {
    // The files of the change that did not fail have documents.
    await this.#publish({ change, paths: [], documents: "many", failed });
    this.#context.onProgress(0);
  }

  /**
   * Makes the documents, summary tasks and outcome of a change. Returns the number of documents.
   * `onIndexed` is awaited before the outcome, so that callers that wait for the outcome find the
   * locks of the change released.
   */
  async index(
    change: Change,
    { onIndexed, ...options }: IndexingOptions & { readonly onIndexed?: () => Promise<void> } = {},
  ): Promise<number> {
    const { outcome, directories, apart } = await this.#indexer.index(change, options);
    // Before the outcome: if the process dies in between, these changes have no effect.
    for (const path of apart) await this.#context.announce({ kind: "written", path });
    // Before the outcome: a process that finds the outcome does nothing more. Sidecars request no
    // sidecars.
    if (!isSidecar(change.path)) await this.#context.sidecars.request(directories);
    await onIndexed?.();
    await this.#publish(outcome);
    this.#context.onProgress(outcome.documents.length);
    return outcome.documents.length;
  }

  /**
   * Publishes an outcome if its change is in the log. Otherwise the outcome would count for another
   * change that gets the number later.
   */
  async #publish(outcome: NewOutcome): Promise<void> {
    const { tree, outcomes } = this.#context.derived;
    await tree.changes.mustBeSame();
    if (await tree.changes.has(outcome.change)) await outcomes.publish(outcome);
  }

  async #do(task: Task, signal: AbortSignal, isAlone: boolean): Promise<unknown> {
    if (task.task === "summary") return await this.#context.sidecars.write(task, signal, { isAlone });
    if (task.task === "session") return await extractArchive(this.#context, task, signal);
    return await this.#handleIndex(task, signal, isAlone);
  }

  /**
   * Returns undefined if the ticket must be retried later, because another one is processed alone.
   */
  async #together(
    isAlone: boolean,
    work: (isAlone: boolean) => Promise<unknown>,
  ): Promise<{ readonly result: unknown } | undefined> {
    const { latch } = this.#context.waits;
    if (isAlone) return await latch.alone(() => work(true));
    if (!latch.enter()) return undefined;
    try {
      return { result: await work(false) };
    } finally {
      latch.leave();
    }
  }

  async #earlierAttempts({ id, attempt, meta }: Delivery): Promise<EarlierAttempts> {
    const { failures = 0, deaths = 0 } = meta as Partial<IndexTask>;
    if (attempt <= 1) return { failures, deaths };
    const earlier = earlierAttempts(attempt, (await this.#context.queue.find(id))?.history ?? []);
    return { failures: earlier.failures + failures, deaths: earlier.deaths + deaths };
  }

  async #handleIndex(task: IndexTask, signal: AbortSignal, isAlone: boolean): Promise<string> {
    const { change: number, token } = task;
    const tree = this.#tree;
    let hold = token === undefined ? undefined : await this.#findReceived(token, signal);
    try {
      if (await this.#isOfAnotherLog(task)) return "of another log";
      const state = await this.#stateOf(number);
      if (state === "done") return "done before";
      const change = await tree.changes.find(number);
      if (change === undefined) throw new Error(`Change ${number} cannot be seen here yet.`);
      if (state === "over") {
        const { kind, path, from } = change;
        await this.#context.announce({ kind, path, ...(from === undefined ? {} : { from }) });
        return "announced again";
      }
      if (token === undefined) await this.waitForEnd(change, signal, isAlone);
      // Added files are locked until they are indexed. The hold that came with the ticket may have
      // lapsed, a worker may have died with it, or the process that added them may have died before
      // it made the ticket.
      if (token !== undefined || (await this.#isAdded(change))) {
        const request = { mode: "tree", signal, tag: indexingTag } as const;
        hold ??= await this.#acquire(
          (timeoutMs) => tree.locks.acquire(change.path, { ...request, timeoutMs }),
          isAlone,
        );
      }
      const either = hold === undefined ? signal : AbortSignal.any([signal, hold.signal]);
      const options = { signal: either, isEachApart: isAlone, onIndexed: () => release(hold) };
      const count = await this.index(change, options);
      return `${count} documents`;
    } finally {
      await release(hold);
    }
  }

  /**
   * "over": no process will read what is made for this change. Its index was deleted since, or its
   * work was given up and its ticket is replayed.
   */
  async #stateOf(change: number): Promise<"open" | "done" | "over"> {
    const { derived } = this.#context;
    const outcome = await derived.outcomes.find(change);
    if (outcome !== undefined) return outcome.failed === undefined ? "done" : "over";
    const { base } = await derived.decideIndex();
    return change < base || (await this.#isInSnapshot(change)) ? "over" : "open";
  }

  /**
   * True if an older copy of the log was restored: its change with this number is another one, or
   * does not exist yet.
   */
  async #isOfAnotherLog({ change, id }: IndexTask): Promise<boolean> {
    const { changes, disk } = this.#tree;
    const found = await changes.findId(change);
    // A share may show the ticket before it shows the change.
    if (found === undefined) return disk.volume.kind === "local";
    // A change that was damaged and repaired in between has another id.
    return id !== undefined && id !== "" && found !== "" && found !== id;
  }

  async #isInSnapshot(change: number): Promise<boolean> {
    const nowMs = this.#tree.ground.ports.clock.monotonicMs();
    if (nowMs - this.#snapshot.lookedAtMs >= snapshotLookMs)
      this.#snapshot = { position: await this.#context.derived.findSnapshotPosition(), lookedAtMs: nowMs };
    return change <= this.#snapshot.position;
  }

  async #isAdded({ kind, path }: Change): Promise<boolean> {
    return kind === "written" && path !== "" && (await this.#tree.findEntry(path))?.kind === "directory";
  }

  async #findReceived(token: string, signal: AbortSignal): Promise<PathHold | undefined> {
    try {
      return await this.#tree.locks.receive(token, { signal });
    } catch (error) {
      if (isHoldfastError(error, "NO_SUCH_TRANSFER")) return undefined;
      throw error;
    }
  }

  /**
   * Waits until the hold of a change is over: a change is announced before it is committed. The
   * hold is over as soon as another one is granted.
   */
  protected async waitForEnd({ path, from }: Change, signal: AbortSignal, isAlone: boolean): Promise<void> {
    const requests = [path, ...(from === undefined ? [] : [from])].map((each) => ({ path: each, shared: true }));
    const { locks } = this.#tree;
    const options = { signal, tag: indexingTag };
    const acquire = (timeoutMs: number): Promise<PathHold> => locks.acquireAll(requests, { ...options, timeoutMs });
    try {
      await (await this.#acquire(acquire, isAlone)).release();
    } catch (error) {
      // Another program put a link there that is dangling or leads out of the tree: nothing of the
      // change is left.
      if (!isHoldfastError(error, "INVALID_PATH")) throw error;
    }
  }

  /** Acquires a lock as `LockWaits` allows. Throws AllWorkersWaiting. */
  async #acquire<T>(acquire: (timeoutMs: number) => Promise<T>, isAlone: boolean): Promise<T> {
    return await this.#context.waits.get(
      (timeoutMs) => (timeoutMs === 0 ? acquire(timeoutMs) : this.#waitFor(() => acquire(timeoutMs))),
      { isAlone },
    );
  }

  async #waitFor<T>(wait: () => Promise<T>): Promise<T> {
    this.#waiting++;
    this.#tellIfOnlyWaiting();
    try {
      return await wait();
    } finally {
      this.#waiting--;
    }
  }

  #tellIfOnlyWaiting(): void {
    if (this.#waiting === this.#inProgress) this.#onlyWaits?.();
  }
}

/** Releases a hold. If that fails now, it is released later, or ends with this process. */
async function release(hold: PathHold | undefined): Promise<void> {
  await hold?.release().catch(() => undefined);
}
