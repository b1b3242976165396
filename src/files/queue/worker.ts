// A worker: does the tasks of a queue, one delivery at a time.
import { isHoldfastError } from "../../errors.ts";
import type { Delivery } from "../../handoff/consume/delivery.ts";
import type { DeadLetter } from "../../handoff/model/handoff.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { IndexRecord } from "../documents/index-record.ts";
import type { Outcomes } from "../documents/outcomes.ts";
import type { Change } from "../model/file-tree.ts";
import { indexingTag } from "../tree/layout.ts";
import type { SessionArchives } from "../sessions/session-archives.ts";
import { isSidecar } from "../sidecars/sidecar-name.ts";
import type { Sidecars } from "../sidecars/sidecars.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { Indexer, IndexingOptions } from "./indexer.ts";
import { OthersWait, type LockWaits } from "./lock-waits.ts";
import { taskOf, type IndexTask, type Task } from "./task.ts";
import type { TaskQueue } from "./task-queue.ts";

/** So often a worker looks whether a full disk has room again. */
const roomPauseMs = { min: 100, max: 5_000 };

export interface WorkerParts {
  readonly place: TreePlace;
  readonly queue: TaskQueue;
  readonly indexer: Indexer;
  readonly outcomes: Outcomes;
  readonly decideIndex: () => Promise<IndexRecord>;
  readonly sidecars: Sidecars;
  readonly waits: LockWaits;
  readonly archives: SessionArchives;
  /** Announces a change of its own, and queues it. */
  readonly announce: (change: Omit<Change, "number">) => Promise<void>;
  /** Called with the number of documents that were made. */
  readonly onProgress: (documents: number) => void;
}

export class Worker {
  readonly #parts: WorkerParts;
  #inHand = 0;
  /** Those of them that wait for a lock, or for room on the disk. */
  #waiting = 0;
  #onlyWaits: (() => void) | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  readonly handle = async (delivery: Delivery): Promise<unknown> => {
    const { waits } = this.#parts;
    this.#inHand++;
    try {
      const result = await this.#orWaitForRoom(delivery);
      waits.forget(delivery.id);
      return result;
    } catch (error) {
      if (!(error instanceof OthersWait)) throw error;
      await delivery.postpone({ delayMs: waits.nextPauseMs(delivery.id) });
      return undefined;
    } finally {
      this.#inHand--;
      this.#tellIfOnlyWaiting();
    }
  };

  /** Calls back as soon as no delivery in hand is worked on: each waits for a lock or for room, perhaps for ever. */
  whenOnlyWaiting(call: () => void): void {
    this.#onlyWaits = call;
    this.#tellIfOnlyWaiting();
  }

  /** A full disk is no fault of the task: it counts as no attempt, and is waited for. */
  async #orWaitForRoom(delivery: Delivery): Promise<unknown> {
    const { clock } = this.#parts.place.ground.ports;
    for (let pauseMs = roomPauseMs.min; ; pauseMs = Math.min(roomPauseMs.max, 2 * pauseMs))
      try {
        return await this.#do(taskOf(delivery.meta), delivery.signal);
      } catch (error) {
        if (!isHoldfastError(error, "DISK_FULL")) throw error;
        await this.#waitFor(() => clock.sleep(pauseMs, { signal: delivery.signal, background: true }));
      }
  }

  /** What is given up is done: callers that wait for it are told so by the outcome. */
  async bury({ id, reason }: DeadLetter): Promise<void> {
    const found = await this.#parts.queue.find(id);
    const task = found?.meta === undefined ? undefined : taskOf(found.meta);
    if (task?.task === "index") await this.giveUp(task.change, reason);
  }

  async giveUp(change: number, failed: string): Promise<void> {
    // Files of the change that did not fail have documents.
    await this.#parts.outcomes.publish({ change, paths: [], documents: "many", failed });
    this.#parts.onProgress(0);
  }

  /**
   * Makes documents, summary tasks and the outcome of a change. How many documents. `onIndexed` is waited for before
   * the outcome: callers that wait for that find the locks of the change released.
   */
  async index(
    change: Change,
    { onIndexed, ...options }: IndexingOptions & { readonly onIndexed?: () => Promise<void> } = {},
  ): Promise<number> {
    const { indexer, outcomes, sidecars, onProgress } = this.#parts;
    const { outcome, directories } = await indexer.index(change, options);
    // Before the outcome: a process that finds that does nothing more. Sidecars ask for no sidecars.
    if (!isSidecar(change.path)) await sidecars.request(directories);
    await onIndexed?.();
    await outcomes.publish(outcome);
    onProgress(outcome.documents.length);
    return outcome.documents.length;
  }

  async #do(task: Task, signal: AbortSignal): Promise<unknown> {
    if (task.task === "summary") return await this.#parts.sidecars.write(task, signal);
    if (task.task === "session") return await this.#parts.archives.extract(task, signal);
    return await this.#handleIndex(task, signal);
  }

  async #handleIndex({ change: number, token }: IndexTask, signal: AbortSignal): Promise<string> {
    const { place, outcomes } = this.#parts;
    let hold = token === undefined ? undefined : await this.#findReceived(token, signal);
    try {
      if ((await outcomes.find(number)) !== undefined) return "done before";
      const change = await place.changes.find(number);
      if (change === undefined) throw new Error(`Change ${number} cannot be seen here yet.`);
      if (number < (await this.#parts.decideIndex()).base) {
        // The index was deleted since, and its processes look only at what came after that.
        const { number: _number, ...again } = change;
        await this.#parts.announce(again);
        return "announced again";
      }
      if (token === undefined) await this.waitForEnd(change, signal);
      // What was added is locked until it is indexed. The hold that came with the ticket may have lapsed, a worker may
      // have died with it, or the process that added may have died before it made the ticket.
      if (token !== undefined || (await this.#isAdded(change))) {
        const locks = await place.locks();
        const request = { mode: "tree", signal, tag: indexingTag } as const;
        hold ??= await this.#acquire((timeoutMs) => locks.acquire(change.path, { ...request, timeoutMs }));
      }
      const either = hold === undefined ? signal : AbortSignal.any([signal, hold.signal]);
      const count = await this.index(change, { signal: either, onIndexed: () => release(hold) });
      return `${count} documents`;
    } finally {
      await release(hold);
    }
  }

  async #isAdded({ kind, path }: Change): Promise<boolean> {
    return kind === "written" && path !== "" && (await this.#parts.place.findLook(path))?.kind === "directory";
  }

  async #findReceived(token: string, signal: AbortSignal): Promise<PathHold | undefined> {
    try {
      return await (await this.#parts.place.locks()).receive(token, { signal });
    } catch (error) {
      if (isHoldfastError(error, "NO_SUCH_TRANSFER")) return undefined;
      throw error;
    }
  }

  /** A change is announced before it is committed. Its hold is over as soon as another one is granted. */
  protected async waitForEnd({ path, from }: Change, signal: AbortSignal): Promise<void> {
    const requests = [path, ...(from === undefined ? [] : [from])].map((each) => ({ path: each, shared: true }));
    const locks = await this.#parts.place.locks();
    const options = { signal, tag: indexingTag };
    await (await this.#acquire((timeoutMs) => locks.acquireAll(requests, { ...options, timeoutMs }))).release();
  }

  /** OthersWait. */
  async #acquire<T>(acquire: (timeoutMs: number) => Promise<T>): Promise<T> {
    return await this.#parts.waits.get((timeoutMs) =>
      timeoutMs === 0 ? acquire(timeoutMs) : this.#waitFor(() => acquire(timeoutMs)),
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
    if (this.#waiting === this.#inHand) this.#onlyWaits?.();
  }
}

/** A hold that cannot be released now is released later, or ends with this process. */
async function release(hold: PathHold | undefined): Promise<void> {
  await hold?.release().catch(() => undefined);
}
