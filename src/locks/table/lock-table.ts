// The lock table: a rolling chain of the one ordered list of requests, and the hold files that say which of them still stand.
//
// A request stands as long as its hold file, `holds/<id>`, is there. Its owner removes it to release: consent needs no record. Everybody else must drop the
// request from the list by an append before he removes the file, and must complete what was committed under it: judgement is a record. So a hold
// file that is gone means that its owner will commit nothing more and that all he has committed is done. Its name is never used again, so that
// its absence cannot be an old answer: nobody has looked for it before it was there.
import { ensureDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { RollingChain, type AppendOptions, type RollingEntry } from "../../durable/chain/rolling-chain.ts";
import type { HolderState } from "../../durable/liveness/liveness-judge.ts";
import { isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { randomName } from "../../format/id.ts";
import { RequestsToRemove } from "./debts.ts";
import { isLapsed } from "./lapse.ts";
import { findLeftovers, hasLiveHolds, removeLeftovers } from "./cleanup.ts";
import { findTree } from "../naming/lock-names.ts";
import { applyRedo, emptyTrash, stuck } from "../redo/apply.ts";
import { doneDirectory, type RedoFiles } from "../redo/paths.ts";
import type { Redo } from "../redo/record.ts";
import { checkTable, emptyTable, tableKind, type LockRequestRecord, type Table, type Transfer } from "./request.ts";
import { PendingTableChanges } from "./pending-changes.ts";

/** Beyond twice as many requests as were found standing last time, and so many more, all of them are looked at. */
const untidyMax = 32;

export interface LockTableOptions {
  /** Of the tree that redos change. Default: none; then what others have committed is done in the tree that the ground is of. */
  readonly root?: string | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** For one who may write nothing: the table must be there. */
  readonly toLook?: boolean | undefined;
  /** What the table runs on: the real one, or a known-wrong variant. */
  readonly ChainClass?: typeof RollingChain | undefined;
}

/** How many requests of this process bring one collection: half of what an epoch holds, so that a single busy process keeps up with itself. */
const requestsPerCollection = 2048;

/** What an append that makes a request knows of it. */
export interface NewRequest {
  readonly id: string;
  readonly fence: number;
  readonly change: string;
}

/** The list with a request of ours in it. */
interface MadeRequest extends RollingEntry<Table> {
  readonly id: string;
}

export class LockTable {
  readonly ground: Ground;
  readonly place: RedoFiles;
  readonly #holds: string;
  #chain!: RollingChain<Table>;
  readonly #debts: RequestsToRemove;
  readonly #verdicts: PendingTableChanges;
  #tidyAt = untidyMax;
  #requests = 0;

  protected constructor(ground: Ground, root: string | undefined) {
    this.ground = ground;
    const { directory } = ground.layout;
    this.place = { ports: ground.ports, root, directory };
    this.#holds = `${directory}/holds`;
    const append = (): Promise<unknown> => this.append((table) => table);
    this.#debts = new RequestsToRemove(ground.ports.clock, append, () => this.#verdicts.hasCondemned);
    this.#verdicts = new PendingTableChanges(
      (request) => this.judgedIn(request),
      (id) => this.#debts.has(id),
    );
  }

  static async open(
    ground: Ground,
    { root, slotsPerEpoch, toLook, ChainClass = RollingChain }: LockTableOptions = {},
  ): Promise<LockTable> {
    const table = new this(ground, root);
    const { disk, host } = ground.ports;
    const { directory } = ground.layout;
    if (!toLook)
      for (const name of ["holds", "redo", "done", "trash"]) await ensureDirectory(disk, `${directory}/${name}`);
    table.#chain = await ChainClass.open<Table>(ground.staging, `${directory}/table`, {
      kind: tableKind,
      initial: emptyTable,
      check: checkTable,
      counts: (state, id) => table.counts(state, id),
      slotsPerEpoch,
      // A lock need not survive a power cut, because its holder does not.
      sync: false,
      bootId: host.bootId,
      mayGiveUp: async () => !(await hasLiveHolds(ground)),
    });
    return table;
  }

  holdFile(id: string): string {
    return `${this.#holds}/${id}`;
  }

  /** The newest list, for those who act on it. */
  async read(): Promise<RollingEntry<Table>> {
    return await this.#chain.read();
  }

  /**
   * Makes the list that `change` derives from the newest one the newest, or nothing when it returns undefined. What is known to be over is left out before
   * `change` sees it. What was condemned is dropped by this append, completed, and its hold files removed.
   */
  async append(
    change: (table: Table, made: Omit<NewRequest, "id">) => Table | undefined,
    { id = this.#newName(), ...options }: AppendOptions & { readonly id?: string } = {},
  ): Promise<RollingEntry<Table> | undefined> {
    let dropped: readonly LockRequestRecord[] = [];
    let owed: readonly string[] = [];
    const entry = await this.#chain.append(
      id,
      (newest, number) => {
        dropped = newest.requests.filter((request) => this.#verdicts.isCondemned(request));
        owed = this.#debts.ids;
        return change(this.#verdicts.leaveOut(newest), { fence: number, change: id });
      },
      options,
    );
    if (entry === undefined) return undefined;
    // They are not in the list now and never will be. What has come to be owed since may be in it.
    this.#debts.settle(owed);
    for (const request of dropped) await this.#cleanUp(request, entry.state);
    this.#verdicts.forgetWhatLeft(entry.state);
    return entry;
  }

  /** Appends a request, and keeps the file that became the slot as its hold file: releasing is removing it. TOO_LARGE when what stands leaves no room for it. */
  async request(change: (table: Table, made: NewRequest) => Table | undefined): Promise<MadeRequest | undefined> {
    try {
      return await this.#request(change);
    } catch (error) {
      if (!isHoldfastError(error, "TOO_LARGE")) throw error;
      // What is over takes room as long as nobody has looked at it.
      await this.standing((await this.read()).state.requests);
      return await this.#request(change);
    }
  }

  async #request(change: (table: Table, made: NewRequest) => Table | undefined): Promise<MadeRequest | undefined> {
    const { holder } = await this.ground.life();
    let id = "";
    let entry;
    try {
      entry = await this.append((table, made) => change(table, { ...made, id }), {
        keepAs: () => this.holdFile((id = `${holder.id}.${this.#newName()}`)),
      });
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) {
        // It may be in the list, with its hold file, and nobody but us knows that nobody wants it.
        this.#debts.add(id);
        void this.#debts.pay();
      }
      throw error;
    }
    if (entry === undefined) return undefined;
    await this.#tidy(entry.state);
    // In nobody's way: what is not collected now is collected by the next who comes to it.
    if (++this.#requests % requestsPerCollection === 0) this.collect().catch(() => undefined);
    return { ...entry, id };
  }

  /** Lets go of what is ours: one operation, which cannot lose a race. */
  async release(id: string): Promise<void> {
    // Known before it is done: whatever comes of the unlink, we will not act under it again.
    this.#verdicts.noteOver(id);
    try {
      await unlinkIfThere(this.ground.ports.disk, this.holdFile(id));
    } catch (error) {
      // It may stand, and only an append can end it now: the next one of this process, whoever makes it.
      this.#verdicts.takeBackOver(id);
      this.#debts.add(id);
      try {
        await this.append((table) => table);
      } catch {
        // What failed first is what the caller has to know.
        void this.#debts.pay();
      }
      throw error;
    }
  }

  /** Those that are not over yet, as far as their hold files tell. */
  async standing<R extends LockRequestRecord>(requests: readonly R[]): Promise<R[]> {
    const left: R[] = [];
    for (const request of requests) if (!(await this.isOver(request.id))) left.push(request);
    return left;
  }

  /** The same for people: where nothing can be written a share is asked by an open, whose answer may be old. */
  async seen<R extends LockRequestRecord>(requests: readonly R[]): Promise<R[]> {
    try {
      return await this.standing(requests);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
    }
    const { disk } = this.ground.ports;
    const left: R[] = [];
    for (const request of requests) if (await disk.canOpen(this.holdFile(request.id))) left.push(request);
    return left;
  }

  async isOver(id: string): Promise<boolean> {
    if (this.#verdicts.isOver(id)) return true;
    if (await isStillThere(this.ground.staging, this.holdFile(id))) return false;
    this.#verdicts.noteOver(id);
    return true;
  }

  /** Those that neither are over nor will be dropped by the next append: their owners live. With `once`, for somebody who cannot watch them for a lease. */
  async judge<R extends LockRequestRecord>(requests: readonly R[], options: { readonly once: boolean }): Promise<R[]> {
    const left: R[] = [];
    // One look for all that a holder has.
    const states = new Map<string, HolderState>();
    for (const request of await this.standing(requests)) {
      if (this.#verdicts.isCondemned(request)) continue;
      const { holder } = request;
      if (request.transfer === undefined && !states.has(holder))
        states.set(holder, await this.ground.stateOf(holder, options));
      const isOrphan = request.transfer === undefined ? states.get(holder) === "dead" : await this.isLapsed(request);
      if (isOrphan) this.#verdicts.condemn(request);
      else left.push(request);
    }
    return left;
  }

  /**
   * Drops `requests` and all that were judged dead, in one append; what was committed under them is completed. Without any,
   * nothing is appended.
   */
  async drop(requests: readonly LockRequestRecord[]): Promise<void> {
    for (const request of requests) this.#verdicts.condemn(request);
    if (!this.#verdicts.hasCondemned) return;
    try {
      await this.append((table) => table);
    } catch (error) {
      void this.#debts.pay();
      throw error;
    }
  }

  /** A request that is no longer in a list may have left its hold file, and work, behind: somebody dropped it and came no further. */
  async finishDropped(request: LockRequestRecord, table: Table): Promise<void> {
    await this.#complete(request.id, table);
    const { disk } = this.ground.ports;
    await unlinkIfThere(disk, this.holdFile(request.id));
    this.#verdicts.noteOver(request.id);
    // In nobody's way if it stays: it says nothing about a request that is over.
    if (request.transfer !== undefined)
      await unlinkIfThere(disk, this.transferFile(request.id, request.transfer)).catch(() => undefined);
  }

  /** Completes what was committed and whose request is no longer listed, as far as `concerns` says. RESOURCE_BUSY when that cannot be done now. */
  async completeOrphans(table: Table, concerns: (redo: Redo) => boolean): Promise<void> {
    const listed = new Set(table.requests.map(({ id }) => id));
    for (const redo of table.redos) if (!listed.has(redo.request) && concerns(redo)) await this.complete(redo);
  }

  async complete(redo: Redo): Promise<void> {
    if (this.#verdicts.isDone(redo.id)) return;
    await this.apply(redo);
    this.#verdicts.noteDone(redo.id);
  }

  /** Ends what the dead have left: their requests, what they committed, and files that never became part of the list. */
  async sweep(): Promise<void> {
    const { ground } = this;
    await ground.sweep();
    const { state } = await this.read();
    const standing = await this.judge(state.requests, { once: true });
    const leftovers = await findLeftovers(ground, standing);
    if (this.#verdicts.hasCondemned || leftovers.length > 0 || state.redos.length > 0) {
      // Also when there is nothing to drop: only what our own append says is surely the newest.
      const entry = await this.append((table) => table);
      if (entry !== undefined) await removeLeftovers(this, entry.state, leftovers);
    }
    await emptyTrash(this.place);
  }

  async collect(): Promise<number> {
    return await this.#chain.collect();
  }

  /** Whether the append `id` is part of this list or was: asked only by an author who slept while everything before and after it went by. */
  protected async counts({ requests, redos }: Table, id: string): Promise<boolean | undefined> {
    if (requests.some(({ change }) => change === id) || redos.some((redo) => redo.id === id)) return true;
    const [holder, isRedo] = id.split(".");
    if (holder === undefined || isRedo === undefined) return false;
    const { disk } = this.ground.ports;
    // Committed, done and left out since. Looked for before the author's own record: as long as that is there, nobody has swept after him.
    if (await disk.canOpen(doneDirectory(this.place, id))) return true;
    return (await isStillThere(this.ground.staging, this.ground.layout.record(holder))) ? false : undefined;
  }

  /** What a verdict is about: not the request for ever, but the request as it was. Somebody may have received it since. */
  protected judgedIn({ change }: LockRequestRecord): string {
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

  /** Order: what it committed is done, then its hold file goes. Others take a file that is gone for the end of all its effects. */
  async #cleanUp(request: LockRequestRecord, table: Table): Promise<void> {
    try {
      await this.finishDropped(request, table);
    } catch (error) {
      // Left to whoever needs those paths: the list still has the redo, and the hold file still stands in the way.
      if (!isHoldfastError(error)) throw error;
    }
  }

  async #complete(request: string, { redos }: Table): Promise<void> {
    for (const redo of redos) if (redo.request === request) await this.complete(redo);
  }

  /** Processes that ended leave requests that nobody else may ever meet: now and then all are looked at. */
  async #tidy({ requests }: Table): Promise<void> {
    if (requests.length < this.#tidyAt) return;
    try {
      this.#tidyAt = 2 * (await this.standing(requests)).length + untidyMax;
    } catch (error) {
      // Whoever asked has his place in the list, and the next who comes tidies up.
      if (!isHoldfastError(error)) throw error;
    }
  }

  /** Whether nobody came for what was to be handed over. */
  async isLapsed({ id, transfer }: LockRequestRecord): Promise<boolean> {
    if (transfer === undefined) return false;
    return await isLapsed(this.ground.staging, this.transferFile(id, transfer), transfer.expiresMs);
  }

  /** Its stamp tells since when a request waits to be taken over. Of one offer: a name that is made again could be taken for what it was before. */
  transferFile(id: string, { secretHash }: Pick<Transfer, "secretHash">): string {
    return `${this.holdFile(id)}.${secretHash}.transfer`;
  }
}
