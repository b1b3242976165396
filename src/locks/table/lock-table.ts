// The lock table: a rolling chain of the ordered list of requests, and the hold files that tell
// which requests still stand.
//
// A request stands as long as its hold file, `holds/<id>`, is there.
//   - Its owner releases it by removing the file. Nothing is appended: the owner's consent needs no
//     record.
//   - Every other process first appends a list without the request, then completes what was
//     committed under it, then removes the file. A judgement is on record before it has effects.
// So a hold file that is gone means that its owner commits nothing more, and that everything
// committed under it is done. Its name is never used again, and no process looks for it before it
// is there: its absence cannot be an old answer.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { RollingChain, type AppendOptions, type RollingEntry } from "../../durable/chain/rolling-chain.ts";
import type { HolderState } from "../../durable/liveness/liveness-judge.ts";
import { isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { randomName } from "../../format/id.ts";
import { findLeftovers, hasLiveHolds, removeLeftovers } from "./leftovers.ts";
import { HoldFiles } from "./hold-files.ts";
import { findTree } from "../naming/lock-names.ts";
import { applyRedo, emptyTrash, stuck } from "../redo/apply.ts";
import { doneDirectory, type RedoFiles } from "../redo/paths.ts";
import type { Redo } from "../redo/record.ts";
import { checkTable, emptyTable, tableKind, type TableRequest, type TableState } from "./request.ts";
import { PendingTableChanges, type Omission } from "./pending-changes.ts";

/**
 * All hold files are looked at when the table has twice as many requests as stood last time, and
 * this many more.
 */
const untidyMax = 32;

export interface LockTableOptions {
  /** Of the tree that redos change. Default: the tree that the ground was made for. */
  readonly root?: string | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** For a process that may write nothing: the table must be there. */
  readonly toLook?: boolean | undefined;
}

/** What an append gives to the requests that it makes or changes. */
type Stamp = Pick<TableRequest, "fence" | "change">;

/** Derives the next state from the newest one. Undefined: nothing is appended. */
type Change<S = Stamp> = (state: TableState, stamp: S) => TableState | undefined;

export class LockTable {
  readonly ground: Ground;
  readonly place: RedoFiles;
  readonly holds: HoldFiles;
  #chain!: RollingChain<TableState>;
  readonly #pending: PendingTableChanges;
  #tidyAt = untidyMax;

  protected constructor(ground: Ground, root: string | undefined) {
    this.ground = ground;
    this.place = { ports: ground.ports, root, directory: ground.layout.directory };
    this.holds = new HoldFiles(ground);
    this.#pending = new PendingTableChanges({
      clock: ground.ports.clock,
      append: () => this.append((state) => state),
      judgedState: (request) => this.judgedState(request),
    });
  }

  static async open(ground: Ground, { root, slotsPerEpoch, toLook }: LockTableOptions = {}): Promise<LockTable> {
    const table = new this(ground, root);
    const { disk, host } = ground.ports;
    const { directory } = ground.layout;
    if (!toLook)
      for (const name of ["holds", "redo", "done", "trash"]) await ensureDirectory(disk, `${directory}/${name}`);
    table.#chain = await RollingChain.open<TableState>(ground.staging, `${directory}/table`, {
      kind: tableKind,
      initial: emptyTable,
      check: checkTable,
      counts: (state, id) => table.counts(state, id),
      slotsPerEpoch,
      // A lock need not survive a power cut, because its holder does not.
      sync: false,
      bootId: host.bootId,
      mayGiveUp: async () => !(await table.hasLiveHolds()),
    });
    return table;
  }

  protected async hasLiveHolds(): Promise<boolean> {
    return await hasLiveHolds(this.ground);
  }

  /** The newest state, fit to act on. */
  async read(): Promise<RollingEntry<TableState>> {
    return await this.#chain.read();
  }

  /**
   * Appends the state that `change` derives from the newest one, or nothing when it returns
   * undefined. `change` gets the newest state without the pending changes. Requests that this
   * append drops are completed, and their hold files removed.
   */
  async append(
    change: Change,
    { id = this.#newName(), ...options }: AppendOptions & { readonly id?: string } = {},
  ): Promise<RollingEntry<TableState> | undefined> {
    let omission: Omission = { state: emptyTable, dropped: [], unwanted: [] };
    const derive = (newest: TableState, number: number): TableState | undefined => {
      omission = this.#pending.omitFrom(newest);
      return change(omission.state, { fence: number, change: id });
    };
    const entry = await this.#chain.append(id, derive, options);
    if (entry === undefined) return undefined;
    for (const request of omission.dropped) await this.#cleanUp(request, entry.state);
    this.#pending.forget(entry.state, omission);
    return entry;
  }

  /**
   * Appends a request. The file that became the slot stays as its hold file: to remove that is to
   * release. Returns the entry with the id of the request. TOO_LARGE when the requests that stand
   * leave no room for it.
   */
  async request(
    change: Change<Stamp & Pick<TableRequest, "id">>,
  ): Promise<(RollingEntry<TableState> & { readonly id: string }) | undefined> {
    const { holder } = await this.ground.session();
    let id = "";
    const append = async (): Promise<RollingEntry<TableState> | undefined> =>
      await this.append((state, stamp) => change(state, { ...stamp, id }), {
        keepAs: () => this.holds.pathOf((id = `${holder.id}.${this.#newName()}`)),
      });
    let entry;
    try {
      entry = await append().catch(async (error: unknown) => {
        if (!isHoldfastError(error, "TOO_LARGE")) throw error;
        // Requests that are over take room until a process looks at their hold files.
        await this.standing((await this.read()).state.requests);
        return await append();
      });
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) {
        // It may be in the table, with its hold file, and only this process knows that no caller
        // wants it.
        this.#pending.noteUnwanted(id);
        void this.#pending.retry();
      }
      throw error;
    }
    if (entry === undefined) return undefined;
    await this.#tidy(entry.state);
    return { ...entry, id };
  }

  /**
   * Releases a request of this process: one operation, which cannot lose a race. If it fails, the
   * next append drops it.
   */
  async release(id: string): Promise<void> {
    // Noted before the unlink: whatever comes of that, this process acts under the request no more.
    this.#pending.noteOver(id);
    try {
      await this.holds.remove(id);
    } catch (error) {
      // The request may stand, and only an append can end it now.
      this.#pending.noteUnwanted(id);
      try {
        await this.append((state) => state);
      } catch {
        // The caller is told why the removal failed.
        void this.#pending.retry();
      }
      throw error;
    }
  }

  /** Those of `requests` whose hold files are there. */
  async standing<R extends TableRequest>(requests: readonly R[]): Promise<R[]> {
    const left: R[] = [];
    for (const request of requests) if (!(await this.isOver(request.id))) left.push(request);
    return left;
  }

  /**
   * The same to be shown to people: where nothing can be written, a share is asked by an open,
   * whose answer may be old.
   */
  async seen<R extends TableRequest>(requests: readonly R[]): Promise<R[]> {
    try {
      return await this.standing(requests);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
    }
    const left: R[] = [];
    for (const request of requests) if (await this.holds.canOpen(request.id)) left.push(request);
    return left;
  }

  async isOver(id: string): Promise<boolean> {
    if (this.#pending.isOver(id)) return true;
    if (await this.holds.isThere(id)) return false;
    this.#pending.noteOver(id);
    return true;
  }

  /**
   * Those of `requests` that stand and whose owners live. The next append drops those whose owners
   * are dead, and offers that have lapsed. With `once`, for a caller that cannot watch a holder for
   * a lease.
   */
  async judge<R extends TableRequest>(requests: readonly R[], options: { readonly once: boolean }): Promise<R[]> {
    const left: R[] = [];
    // Each holder is judged once for all of its requests.
    const states = new Map<string, HolderState>();
    for (const request of await this.standing(requests)) {
      if (this.#pending.isToDrop(request)) continue;
      const { holder } = request;
      if (request.transfer === undefined && !states.has(holder))
        states.set(holder, await this.ground.stateOf(holder, options));
      const isDead =
        request.transfer === undefined ? states.get(holder) === "dead" : await this.holds.isLapsed(request);
      if (isDead) this.#pending.condemn(request);
      else left.push(request);
    }
    return left;
  }

  /**
   * Drops `requests` and all that were judged dead, in one append; what was committed under them is
   * completed. Nothing is appended when there is nothing to drop.
   */
  async drop(requests: readonly TableRequest[]): Promise<void> {
    for (const request of requests) this.#pending.condemn(request);
    if (!this.#pending.hasCondemned) return;
    try {
      await this.append((state) => state);
    } catch (error) {
      void this.#pending.retry();
      throw error;
    }
  }

  /**
   * Ends a request that `state` no longer has: the process that dropped it may have come no
   * further.
   */
  async finishDropped(request: TableRequest, state: TableState): Promise<void> {
    // First what it committed, then its hold file: others take a file that is gone for the end of
    // all its effects.
    for (const redo of state.redos) if (redo.request === request.id) await this.complete(redo);
    await this.holds.remove(request.id);
    this.#pending.noteOver(request.id);
    // Harmless if it stays: it says nothing about a request that is over.
    if (request.transfer !== undefined)
      await this.holds.removeOffer(request.id, request.transfer).catch(() => undefined);
  }

  /**
   * Completes the redos that `concerns` selects and whose requests are no longer listed.
   * RESOURCE_BUSY when that is impossible now.
   */
  async completeOrphans({ requests, redos }: TableState, concerns: (redo: Redo) => boolean): Promise<void> {
    const listed = new Set(requests.map(({ id }) => id));
    for (const redo of redos) if (!listed.has(redo.request) && concerns(redo)) await this.complete(redo);
  }

  async complete(redo: Redo): Promise<void> {
    if (this.#pending.isDone(redo.id)) return;
    await this.apply(redo);
    this.#pending.noteDone(redo.id);
  }

  /**
   * Ends what dead holders left: their requests, what they committed, and files that never became
   * part of the table.
   */
  async sweep(): Promise<void> {
    const { ground } = this;
    await ground.sweep();
    const { state } = await this.read();
    const standing = await this.judge(state.requests, { once: true });
    const leftovers = await findLeftovers(ground, standing);
    if (this.#pending.hasCondemned || leftovers.length > 0 || state.redos.length > 0) {
      // Also when there is nothing to drop: only the state of an own append is surely the newest.
      const entry = await this.append((newest) => newest);
      if (entry !== undefined) await removeLeftovers(this, entry.state, leftovers);
    }
    await emptyTrash(this.place);
  }

  async collect(): Promise<number> {
    return await this.#chain.collect();
  }

  /**
   * Whether the append `id` is or was part of this table: for an author that slept until its epoch
   * was collected.
   */
  protected async counts({ requests, redos }: TableState, id: string): Promise<boolean | undefined> {
    if (requests.some(({ change }) => change === id) || redos.some((redo) => redo.id === id)) return true;
    const [holder, isRedo] = id.split(".");
    if (holder === undefined || isRedo === undefined) return false;
    const { disk } = this.ground.ports;
    // Committed, done and left out since. Looked for before the author's own record: as long as
    // that is there, no process sweeps after the author.
    if (await disk.canOpen(doneDirectory(this.place, id))) return true;
    return (await isStillThere(this.ground.staging, this.ground.layout.record(holder))) ? false : undefined;
  }

  /** What a judgement is about: the request in this state. A receiver may have taken it since. */
  protected judgedState({ change }: TableRequest): string {
    return change;
  }

  protected async apply(redo: Redo): Promise<void> {
    const { ports, directory, root = await findTree(ports.disk, directory) } = this.place;
    if (root === undefined) throw stuck(directory, "it is not known of which tree the locks are");
    await applyRedo({ ports, directory, root }, redo);
  }

  #newName(): string {
    return randomName(this.ground.ports.random.bytes(16));
  }

  async #cleanUp(request: TableRequest, state: TableState): Promise<void> {
    try {
      await this.finishDropped(request, state);
    } catch (error) {
      // Left to the next process that needs those paths: the table still has the redo, and the hold
      // file still blocks.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /**
   * Looks at all hold files now and then: the requests of ended processes that block no other would
   * stay for ever.
   */
  async #tidy({ requests }: TableState): Promise<void> {
    if (requests.length < this.#tidyAt) return;
    try {
      this.#tidyAt = 2 * (await this.standing(requests)).length + untidyMax;
    } catch (error) {
      // The request of the caller is in the table, and the next request tidies up.
      if (!isHoldfastError(error)) throw error;
    }
  }
}
