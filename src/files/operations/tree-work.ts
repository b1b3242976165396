// What every operation on a tree does: takes its lock by a fresh look that is made again under the grant, announces the
// change, commits it, and tells the index side.
import type { FileOptions } from "../model/file-tree.ts";
import type { IndexQueue } from "../model/index-queue.ts";
import type { Change } from "../model/file-tree.ts";
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { leftMsOf } from "../../durable/wait/deadline.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { TablePathLocks } from "../../locks/path/table-path-locks.ts";
import type { LockRequest } from "../../locks/path/path-locks.ts";
import type { RedoDraft } from "../../locks/redo/draft.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { TreeReader } from "../tree/tree-reader.ts";
import { tagPrefix } from "../tree/layout.ts";
import { busyError, isOwnGlance } from "./busy.ts";

/** What an operation found, and the locks that it needs for it. */
export interface Plan {
  readonly requests: readonly Required<Pick<LockRequest, "path" | "mode">>[];
}

/** One call of a user. */
export interface Call extends FileOptions {
  /** "write", for people. */
  readonly name: string;
  /** As the caller gave it. */
  readonly path: string;
}

/** A hold that is held, or that the work under it has given away, and the drafts that were begun under it. */
export class Granted {
  readonly hold: PathHold;
  readonly #locks: TablePathLocks;
  readonly #drafts: RedoDraft[] = [];

  constructor(locks: TablePathLocks, hold: PathHold) {
    this.#locks = locks;
    this.hold = hold;
  }

  /** Changes that are prepared unseen, and committed in one step. */
  async draft(): Promise<RedoDraft> {
    const draft = await this.#locks.draft(this.hold);
    this.#drafts.push(draft);
    return draft;
  }

  /** What was committed is done. A lock that cannot be released now is released in the background. */
  async release(): Promise<void> {
    // Within another hold a draft would last as long as that one.
    for (const draft of this.#drafts) await draft.discard();
    await this.hold.release().catch(() => undefined);
  }
}

/** A change that is to be committed. */
export interface Commit {
  readonly change: NewChange;
  /** Prepares the steps of the draft. */
  readonly stage: () => Promise<void>;
  /** Whether something that was found before must not be found any more. */
  readonly takesAway: boolean;
  /** Whether `stage` is one wait for the disk, which the record of the change can share. Default: no wait, or many. */
  readonly isOneWait?: boolean;
}

/** A tree that changes under every look is used by more processes than can take turns. */
const looksMax = 1000;
/** So long also a caller that wants to wait for less waits for a glance of its own indexing, which takes a few milliseconds. */
const glanceMsMax = 250;

export interface TreeWorkOptions {
  readonly place: TreePlace;
  readonly reader: TreeReader;
  readonly queue: IndexQueue;
  /** For each operation. */
  readonly timeoutMs: number;
}

export class TreeWork {
  readonly place: TreePlace;
  readonly reader: TreeReader;
  readonly queue: IndexQueue;
  readonly #timeoutMs: number;

  constructor({ place, reader, queue, timeoutMs }: TreeWorkOptions) {
    this.place = place;
    this.reader = reader;
    this.queue = queue;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Looks what is there, takes the locks for it, and looks again: another process may have changed it between the look
   * and the grant. Then the locks are chosen anew. RESOURCE_BUSY, LOCK_LOST.
   */
  async underLock<P extends Plan, T>(
    call: Call,
    look: () => Promise<P>,
    work: (granted: Granted, plan: P) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.place.ground.ports;
    const wait = { startMs: clock.monotonicMs(), timeoutMs: call.timeoutMs ?? this.#timeoutMs };
    for (let looks = 1; looks <= looksMax; looks++) {
      const wanted = await look();
      const granted = await this.#acquire(call, wanted, leftMsOf(clock, wait));
      try {
        const plan = await this.lookAgain(wanted, look);
        if (isSame(plan, wanted)) return await work(granted, plan);
      } catch (error) {
        // What this process had staged is gone: it slept past its lease, and was swept.
        if (hasErrno(error, "ENOENT", "ESTALE")) await granted.hold.assertHeld();
        throw error;
      } finally {
        await granted.release();
      }
    }
    const message = `${call.name}: ${call.path} changed between ${looksMax} looks and the locks that were chosen by them. Nothing was done: try again.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: call.path, blockedBy: [], worthWaiting: true });
  }

  /** The look under the grant, which counts. */
  protected async lookAgain<P extends Plan>(_wanted: P, look: () => Promise<P>): Promise<P> {
    return await look();
  }

  /**
   * Announces the change, then commits it. In the other order a process that dies in between leaves a change that no
   * log has: the process that completes it knows nothing of files. Resolves when it is done and durable.
   */
  async commit(draft: RedoDraft, { change, stage, takesAway, isOneWait = false }: Commit): Promise<Change> {
    const { changes } = this.place;
    if (!isOneWait) await stage();
    const staging = changes.stage(change);
    try {
      await allEnded(isOneWait ? [stage(), staging] : [staging]);
      const announced = await changes.announce(await staging);
      if (takesAway) await this.#hide(announced);
      await draft.commit();
      return announced;
    } finally {
      await staging.then(
        (staged) => changes.discard(staged),
        () => undefined,
      );
    }
  }

  /** After the commit. Never fails: the dispatcher makes the ticket that this process could not. */
  async tell(change: Change, token?: string): Promise<string> {
    try {
      return await this.queue.enqueue(change, { token });
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      return "";
    }
  }

  async #hide(change: Change): Promise<void> {
    try {
      await this.queue.hide(change);
    } catch (error) {
      const path = change.from ?? change.path;
      const message = `The index could not let go of ${path}, so nothing was done to the files. Mend the index, and try again.`;
      throw holdfastError("INDEX_FAILED", message, { path }, error);
    }
  }

  async #acquire(call: Call, { requests }: Plan, timeoutMs: number): Promise<Granted> {
    const { within, signal, name } = call;
    const locks = await this.place.locksFor(within);
    const tag = `${tagPrefix}${name}`;
    for (let leftMs = timeoutMs; ; leftMs = glanceMsMax)
      try {
        const hold = await locks.acquireAll(requests, { within, signal, timeoutMs: leftMs, tag });
        return new Granted(locks, hold);
      } catch (error) {
        if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw busyError(name, call.path, error, undefined);
        const own = (await this.place.ground.session()).holder.id;
        if (leftMs >= glanceMsMax || !isOwnGlance(error, own)) throw busyError(name, call.path, error, own);
      }
  }
}

function isSame({ requests: one }: Plan, { requests: other }: Plan): boolean {
  return (
    one.length === other.length &&
    one.every(({ path, mode }, index) => other[index]?.path === path && other[index].mode === mode)
  );
}
