// The lock table of a directory: its requests are in a rolling chain, its marks are hold files, and changes of holders
// are staged as redos.
//
// The directory `holds/` has three kinds of files: the hold files of requests, `<id>`; files of offers,
// `<id>.<hash>.transfer`; and receipts of transferred requests, `<receiver>.<…>.received`.
import { ensureDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { RollingChain, type RollingChainOptions } from "../../durable/chain/rolling-chain.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { findLeftovers, hasLiveHolds, removeLeftovers } from "./leftovers.ts";
import { findTree } from "../naming/lock-names.ts";
import { applyRedo, emptyTrash, stuckError } from "../redo/apply.ts";
import { redoDirectory, type RedoFiles, type Redo } from "../redo/redo.ts";
import { findStat } from "../redo/preflight.ts";
import {
  emptyTable,
  tableKind,
  type TableRequest,
  type TableState,
  checkTable,
  tableDeltas,
  type Transfer,
} from "./request.ts";
import { RequestTable } from "./request-table.ts";
import { withServerClock } from "../../durable/liveness/server-age.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";

export interface LockTableOptions {
  /** The root of the tree that redos change. Default: the tree for which the ground was created. */
  readonly root?: string | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** For a process that must not write: the table must exist. */
  readonly listOnly?: boolean | undefined;
}

export class LockTable extends RequestTable {
  declare readonly ground: Ground;
  override readonly redoFiles: RedoFiles;
  #chain!: RollingChain<TableState>;
  #hasDeltas = false;

  protected constructor(ground: Ground, root: string | undefined) {
    super(ground);
    this.redoFiles = { ports: ground.ports, root, directory: ground.layout.directory };
  }

  static async open(ground: Ground, { root, slotsPerEpoch, listOnly }: LockTableOptions = {}): Promise<LockTable> {
    const table = new this(ground, root);
    const { disk } = ground.ports;
    const { directory } = ground.layout;
    if (!listOnly)
      for (const name of ["holds", "redo", "done", "trash"]) await ensureDirectory(disk, `${directory}/${name}`);
    const options = table.#chainOptions(slotsPerEpoch);
    table.#chain = await ground.openChain(`${directory}/table`, options);
    return table;
  }

  /**
   * Repairs a CORRUPT table. No other process may have joined the ground, so all holds are over. Fences continue to
   * grow. Committed redos stay, unless the damaged slot was the commit.
   */
  static async repair(ground: Ground, moveAside: (path: string) => Promise<unknown>): Promise<void> {
    const path = `${ground.layout.directory}/table`;
    const options = new this(ground, undefined).#chainOptions(undefined);
    await RollingChain.repair<TableState>(ground.staging, path, options, moveAside);
  }

  protected override get chain(): RollingChain<TableState> {
    return this.#chain;
  }

  /** Converts a table that older releases can use to one with deltas, which they refuse. */
  async upgrade(): Promise<void> {
    await this.#chain.upgrade(this.newName());
    await this.#chain.settled();
  }

  /**
   * True if older releases refuse this table: those that know only whole slots, and redos with a directory for each
   * step.
   */
  async hasDeltas(): Promise<boolean> {
    return (this.#hasDeltas ||= await this.#chain.hasDeltas());
  }

  #chainOptions(slotsPerEpoch: number | undefined): RollingChainOptions<TableState> {
    const { disk, host } = this.ground.ports;
    return {
      kind: tableKind,
      initial: emptyTable,
      check: checkTable,
      deltas: tableDeltas(disk.volume.kind),
      counts: (state, id) => this.counts(state, id),
      slotsPerEpoch,
      // A lock need not survive a power cut, because its holder does not either.
      sync: false,
      bootId: host.bootId,
      mayGiveUp: async () => !(await this.hasLiveHolds()),
    };
  }

  protected async hasLiveHolds(): Promise<boolean> {
    return await hasLiveHolds(this.ground);
  }

  override markOf(id: string): string {
    return `${this.ground.layout.directory}/holds/${id}`;
  }

  protected override async hasMark(id: string): Promise<boolean> {
    return await isStillThere(this.ground.staging, this.markOf(id));
  }

  protected override async removeMark(id: string): Promise<void> {
    await unlinkIfThere(this.ground.staging.disk, this.markOf(id));
  }

  /**
   * Created before the table says that the request waits for a receiver: the offer expires by the stamp of this file.
   */
  override async createOffer(id: string, transfer: Transfer): Promise<void> {
    await createUniqueFile(this.ground.staging.disk, this.#offerOf(id, transfer), new Uint8Array(), { sync: false });
  }

  override async removeOffer(id: string, transfer: Pick<Transfer, "secretHash">): Promise<void> {
    await unlinkIfThere(this.ground.staging.disk, this.#offerOf(id, transfer));
  }

  /**
   * Created before a hold is received. A hold file is named after the process that acquired it, and the names of
   * these files show whether a living process holds anything. The receipt carries the receiver's name.
   */
  override async createReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await createUniqueFile(this.ground.staging.disk, this.#receiptOf(id, receiver), new Uint8Array(), { sync: false });
  }

  /** Never fails: a receipt that stays only says that its process holds something, and is swept once that is over. */
  override async removeReceipt(id: string, receiver: string): Promise<void> {
    if (isMadeBy(id, receiver)) return;
    await unlinkIfThere(this.ground.staging.disk, this.#receiptOf(id, receiver)).catch(() => undefined);
  }

  /**
   * True if no process accepted an offered hold in time. Compares two stamps of the server, so that no machine's
   * clock decides.
   */
  override async isLapsed({ id, transfer }: Pick<TableRequest, "id" | "transfer">): Promise<boolean> {
    if (transfer === undefined) return false;
    const { staging } = this.ground;
    return await withServerClock(staging, async (clock) => {
      const ageMs = await clock.findAgeMs(this.#offerOf(id, transfer));
      return ageMs === undefined || ageMs > transfer.expiresMs;
    });
  }

  /** Each offer has its own file: if several shared one name, a client could confuse a new one with an old one. */
  #offerOf(id: string, { secretHash }: Pick<Transfer, "secretHash">): string {
    return `${this.markOf(id)}.${secretHash}.transfer`;
  }

  #receiptOf(id: string, receiver: string): string {
    return `${this.markOf(`${receiver}.${id.split(".")[1]}`)}.received`;
  }

  /**
   * Like `standing`, for display to people. If the disk is not writable, opens the files on a share, where the answer
   * may be stale.
   */
  override async seen<R extends TableRequest>(requests: readonly R[]): Promise<R[]> {
    try {
      return await this.standing(requests);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
    }
    const left: R[] = [];
    for (const request of requests)
      if (await this.ground.ports.disk.canOpen(this.markOf(request.id))) left.push(request);
    return left;
  }

  /** Removes what dead holders left: requests, committed changes, and files that never became part of the table. */
  override async sweep(): Promise<void> {
    const { ground } = this;
    await ground.sweep();
    const { state } = await this.read();
    const standing = await this.judge(state.requests, { once: true });
    const leftovers = await findLeftovers(ground, standing);
    if (this.pending.hasCondemned || leftovers.length > 0 || state.redos.length > 0) {
      // Append even if there is nothing to drop: only the state after an own append is certainly the newest.
      const entry = await this.append((newest) => newest);
      if (entry !== undefined) await removeLeftovers(this, entry.state, leftovers);
    }
    await emptyTrash(this.redoFiles);
  }

  /**
   * Returns whether the append `id` is or was part of this table, for an author that slept until its epoch was
   * collected.
   */
  protected async counts({ requests, redos }: TableState, id: string): Promise<boolean | undefined> {
    if (requests.some(({ change }) => change === id) || redos.some((redo) => redo.id === id)) return true;
    const [holder, isRedo] = id.split(".");
    if (holder === undefined || isRedo === undefined) return false;
    const { disk } = this.ground.ports;
    if ((await findStat(disk, redoDirectory(this.redoFiles, id))) !== undefined) return false;
    // Its staged name is gone: the redo was applied and dropped since, or swept. Check this before the author's
    // record: while that record exists, no process sweeps the author's files.
    return (await isStillThere(this.ground.staging, this.ground.layout.record(holder))) ? true : undefined;
  }

  protected override async apply(redo: Redo): Promise<void> {
    const { ports, directory, root = await findTree(ports.disk, directory) } = this.redoFiles;
    if (root === undefined) throw stuckError(directory, "it is not known of which tree the locks are");
    await applyRedo({ ports, directory, root }, redo);
  }
}

function isMadeBy(id: string, holder: string): boolean {
  return id.startsWith(`${holder}.`);
}
