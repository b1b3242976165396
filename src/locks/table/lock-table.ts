// The lock table of a directory: its requests are in a rolling chain, its marks are hold files, `holds/<id>`, and
// changes of holders are staged as redos.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { RollingChain, type RollingChainOptions } from "../../durable/chain/rolling-chain.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { findLeftovers, hasLiveHolds, removeLeftovers } from "./leftovers.ts";
import { HoldFiles } from "./hold-files.ts";
import { findTree } from "../naming/lock-names.ts";
import { applyRedo, emptyTrash, stuckError } from "../redo/apply.ts";
import { redoDirectory, type RedoFiles, type Redo } from "../redo/redo.ts";
import { findStat } from "../redo/preflight.ts";
import { emptyTable, tableKind, type TableRequest, type TableState, checkTable, tableDeltas } from "./request.ts";
import { RequestTable } from "./request-table.ts";

export interface LockTableOptions {
  /** The root of the tree that redos change. Default: the tree for which the ground was created. */
  readonly root?: string | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** For a process that must not write: the table must exist. */
  readonly listOnly?: boolean | undefined;
}

export class LockTable extends RequestTable {
  declare readonly ground: Ground;
  declare readonly holds: HoldFiles;
  override readonly redoFiles: RedoFiles;
  #chain!: RollingChain<TableState>;
  #hasDeltas = false;

  protected constructor(ground: Ground, root: string | undefined) {
    super(ground, new HoldFiles(ground));
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
    for (const request of requests) if (await this.holds.canOpen(request.id)) left.push(request);
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
