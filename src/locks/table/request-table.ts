// The rules of a lock table: a state chain of the ordered list of requests, and the marks that tell
// which requests still stand.
//
// A request stands as long as its mark is there: a hold file, or a row of a database.
//   - Its owner releases it by removing the mark. Nothing is appended: the owner's consent needs no
//     record.
//   - Every other process first appends a list without the request, then completes what was
//     committed under it, then removes the mark. A judgement is on record before it has effects.
// So a mark that is gone means that its owner commits nothing more, and that everything committed
// under it is done. Its name is never used again, and no process looks for it before it is there:
// its absence cannot be a stale answer.
import type { RollingEntry } from "../../durable/chain/rolling-chain-options.ts";
import type { StateChain } from "../../durable/chain/state-chain.ts";
import type { Liveness } from "../../durable/liveness/liveness.ts";
import type { HolderState } from "../../durable/liveness/liveness-judge.ts";
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import type { RedoFiles, Redo } from "../redo/redo.ts";
import { signal } from "../../telemetry/signals.ts";
import {
  GroupAppend,
  type TableChange,
  type GroupEntry,
  type AppendStamp,
  type TableAppend,
  type TableGroup,
} from "./group-append.ts";
import { PendingTableChanges, type PendingState } from "./pending-changes.ts";
import { emptyTable, type TableRequest, type TableState, type Transfer } from "./request.ts";

/**
 * All marks are checked when the table has more than twice the requests that existed at the last check, plus this many.
 */
const untidyMax = 32;

type Entry = RollingEntry<TableState>;

export abstract class RequestTable {
  readonly ground: Liveness;
  /** The directory in which holders stage changes of a tree. Undefined for locks without a tree. */
  readonly redoFiles: RedoFiles | undefined = undefined;
  protected readonly pending: PendingTableChanges;
  readonly #group = new GroupAppend((group) => this.#appendGroup(group));
  #tidyAt = untidyMax;

  protected constructor(ground: Liveness) {
    this.ground = ground;
    this.pending = new PendingTableChanges({
      clock: ground.ports.clock,
      append: () => this.append((state) => state),
      judgedState: (request) => this.judgedState(request),
    });
  }

  protected abstract get chain(): StateChain<TableState>;

  /** Returns the path of a request's mark: an append creates it there, and a waiter listens there for its removal. */
  abstract markOf(id: string): string;
  /** True while the mark of the request exists. False is never a stale answer. */
  protected abstract hasMark(id: string): Promise<boolean>;
  /** Ends the request. */
  protected abstract removeMark(id: string): Promise<void>;
  /** Called before the table says that the request waits for a receiver. The time of the offer starts then. */
  abstract createOffer(id: string, transfer: Transfer): Promise<void>;
  abstract removeOffer(id: string, transfer: Pick<Transfer, "secretHash">): Promise<void>;
  /** Called before a hold is received: records that a process holds a request that another one made. */
  abstract createReceipt(id: string, receiver: string): Promise<void>;
  /** Never fails. */
  abstract removeReceipt(id: string, receiver: string): Promise<void>;
  /** Returns true if no process accepted an offered hold in time, by the clock of the server. */
  abstract isLapsed(request: Pick<TableRequest, "id" | "transfer">): Promise<boolean>;

  /** Removes what dead holders left. */
  abstract sweep(): Promise<void>;

  /** Applies a redo. Throws RESOURCE_BUSY. */
  protected abstract apply(redo: Redo): Promise<void>;

  /** Returns the newest state, which is certain enough to act on. */
  async read(): Promise<Entry> {
    return await this.chain.read();
  }

  /**
   * Appends the state that `change` derives from the newest one; nothing if it returns undefined. `change` gets the
   * newest state without the pending omissions, and may be called several times. After the append, dropped requests
   * are completed and their hold files removed. Appends that wait at the same time share a slot.
   */
  async append(change: TableChange, options: Omit<TableAppend, "change"> = {}): Promise<Entry | undefined> {
    return await this.#group.append({ ...options, change });
  }

  async #appendGroup({ id = this.newName(), change, ...options }: TableGroup): Promise<GroupEntry | undefined> {
    let omission: PendingState = { state: emptyTable, dropped: [], forget: () => undefined };
    const derive = (newest: TableState, number: number): TableState | undefined => {
      omission = this.pending.omitFrom(newest);
      return change(omission.state, { fence: number, change: id });
    };
    const entry = await this.chain.append(id, derive, options);
    if (entry === undefined) return undefined;
    let finished: Promise<void> | undefined;
    return { entry, finish: () => (finished ??= this.#finish(entry, omission)) };
  }

  async #finish({ state }: Entry, { dropped, forget }: PendingState): Promise<void> {
    for (const request of dropped) await this.#cleanUp(request, state);
    forget();
  }

  /**
   * Appends a request. Its hold file is created before; removing that file releases it. Returns the entry with the id
   * of the request. Throws TOO_LARGE if the existing requests leave no space for it.
   */
  async request(
    change: TableChange<AppendStamp & Pick<TableRequest, "id">>,
  ): Promise<(Entry & { readonly id: string }) | undefined> {
    const { holder } = await this.ground.session();
    let id = "";
    const append = async (): Promise<Entry | undefined> =>
      await this.append((state, stamp) => change(state, { ...stamp, id }), {
        keepAs: () => this.markOf((id = `${holder.id}.${this.newName()}`)),
        discardKept: () => this.removeMark(id),
      });
    let entry;
    try {
      entry = await append().catch(async (error: unknown) => {
        if (!isHoldfastError(error, "TOO_LARGE")) throw error;
        // Requests that are over use space until a process checks their hold files.
        await this.standing((await this.read()).state.requests);
        return await append();
      });
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) {
        // The request and its hold file may exist, and only this process knows that no caller wants it.
        this.pending.noteUnwanted(id);
        void this.pending.retry();
      }
      throw error;
    }
    if (entry === undefined) return undefined;
    await this.#tidy(entry.state);
    return { ...entry, id };
  }

  /**
   * Releases a request of this process by one operation, which cannot lose a race. If it fails, the next append drops
   * the request.
   */
  async release(id: string): Promise<void> {
    // Note it before the unlink: whatever its outcome, this process no longer acts under the request.
    this.pending.noteOver(id);
    try {
      await this.removeMark(id);
    } catch (error) {
      // The request may still exist, and only an append can end it now.
      this.pending.noteUnwanted(id);
      try {
        await this.append((state) => state);
      } catch {
        // The caller gets the reason why the removal failed.
        void this.pending.retry();
      }
      throw error;
    }
  }

  /** Returns those of `requests` whose hold files exist. */
  async standing<R extends TableRequest>(requests: readonly R[]): Promise<R[]> {
    const left: R[] = [];
    for (const request of requests) if (!(await this.isOver(request.id))) left.push(request);
    return left;
  }

  /** Like `standing`, for display to people. */
  async seen<R extends TableRequest>(requests: readonly R[]): Promise<R[]> {
    return await this.standing(requests);
  }

  async isOver(id: string): Promise<boolean> {
    if (this.pending.isOver(id)) return true;
    if (await this.hasMark(id)) return false;
    this.pending.noteOver(id);
    return true;
  }

  /**
   * Returns those of `requests` that exist and whose owners live. The next append drops those with dead owners, and
   * expired offers. `once` is for a caller that cannot watch a holder for a lease.
   */
  async judge<R extends TableRequest>(requests: readonly R[], options: { readonly once: boolean }): Promise<R[]> {
    const left: R[] = [];
    // Judge each holder once for all of its requests.
    const states = new Map<string, HolderState>();
    for (const request of await this.standing(requests)) {
      if (this.pending.isToDrop(request)) continue;
      const { holder } = request;
      if (request.transfer === undefined && !states.has(holder))
        states.set(holder, await this.ground.stateOf(holder, options));
      const isDead = request.transfer === undefined ? states.get(holder) === "dead" : await this.isLapsed(request);
      if (isDead) this.pending.condemn(request);
      else left.push(request);
    }
    return left;
  }

  /**
   * Drops `requests`, and all that were judged dead, in one append, and completes what was committed under them.
   * Appends nothing if there is nothing to drop.
   */
  async drop(requests: readonly TableRequest[]): Promise<void> {
    for (const request of requests) this.pending.condemn(request);
    if (!this.pending.hasCondemned) return;
    try {
      await this.append((state) => state);
    } catch (error) {
      void this.pending.retry();
      throw error;
    }
  }

  /** Completes a request that `state` no longer has: the process that dropped it may have died right after. */
  async finishDropped(request: TableRequest, state: TableState): Promise<void> {
    // Complete its redos before removing its hold file: others take a missing hold file as proof that all its effects
    // are done.
    for (const redo of state.redos) if (redo.request === request.id) await this.#recover(redo);
    await this.removeMark(request.id);
    this.pending.noteOver(request.id);
    // If this file stays, it does no harm: it says nothing about a request that is over.
    if (request.transfer !== undefined) await this.removeOffer(request.id, request.transfer).catch(() => undefined);
  }

  /**
   * Completes the redos that `concerns` selects and whose requests are no longer listed. Throws RESOURCE_BUSY if that
   * is impossible now.
   */
  async completeOrphans({ requests, redos }: TableState, concerns: (redo: Redo) => boolean): Promise<void> {
    if (redos.length === 0) return;
    const listed = new Set(requests.map(({ id }) => id));
    for (const redo of redos) if (!listed.has(redo.request) && concerns(redo)) await this.#recover(redo);
  }

  async complete(redo: Redo): Promise<void> {
    if (this.pending.isDone(redo.id)) return;
    await this.apply(redo);
    this.pending.noteDone(redo.id);
  }

  async collect(): Promise<number> {
    return await this.chain.collect();
  }

  /** Identifies the judged state of a request. A receiver may have taken it since. */
  protected judgedState({ change }: TableRequest): string {
    return change;
  }

  protected newName(): string {
    return randomName(this.ground.ports.random.bytes(16));
  }

  /** Completes a redo whose process is gone. */
  async #recover(redo: Redo): Promise<void> {
    if (this.pending.isDone(redo.id)) return;
    await this.complete(redo);
    signal("holdfast:change.recovered", () => ({ location: this.ground.location, id: redo.id }));
  }

  async #cleanUp(request: TableRequest, state: TableState): Promise<void> {
    try {
      await this.finishDropped(request, state);
    } catch (error) {
      // The next process that needs those paths completes it: the table still has the redo, and the hold file still
      // blocks.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /**
   * Checks all hold files from time to time: otherwise requests of ended processes that block no other would stay
   * forever.
   */
  async #tidy({ requests }: TableState): Promise<void> {
    if (requests.length < this.#tidyAt) return;
    try {
      this.#tidyAt = 2 * (await this.standing(requests)).length + untidyMax;
    } catch (error) {
      // The caller's request is in the table. The next request tries this again.
      if (!isHoldfastError(error)) throw error;
    }
  }
}
