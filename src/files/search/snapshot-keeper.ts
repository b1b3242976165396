// SnapshotKeeper: one process at a time publishes the state of its engine, and removes the records
// that the snapshot makes superfluous.
import { isHoldfastError } from "../../errors.ts";
import { EventLoopYield } from "../../durable/wait/event-loop-yield.ts";
import type { Leases } from "../../part/leases.ts";
import type { LoopSignals } from "../../part/loop.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Derived } from "../documents/derived.ts";
import { hashOf } from "../documents/layout.ts";
import type { Follower } from "./follower.ts";

const pauseMs = 2_000;
/** A snapshot is worthwhile if this many changes are not in the last one. */
const changesMin = 200;
/** The same limit for a process that ends. */
const changesMinAtEnd = 20;

export class SnapshotKeeper {
  readonly #derived: Derived;
  readonly #follower: Follower;
  readonly #leases: Leases;
  #documentsMade = 0;
  /** The last warning, which is not repeated. */
  #warned = "";

  constructor(derived: Derived, follower: Follower, leases: Leases) {
    this.#derived = derived;
    this.#follower = follower;
    this.#leases = leases;
  }

  /** Runs until it is stopped. */
  async run({ stopping }: LoopSignals): Promise<void> {
    const sleeper = new Sleeper(this.#derived.tree.ground.ports.clock);
    while (!stopping.aborted) {
      await sleeper.sleep(pauseMs, stopping).catch(() => undefined);
      if (!stopping.aborted) await this.keep(changesMin);
    }
    await this.keep(changesMinAtEnd);
  }

  /** Counts documents that this process made. */
  noteDocuments(count: number): void {
    this.#documentsMade += count;
  }

  /** Publishes a snapshot if the last one lacks this many changes, or this many documents of this process. */
  async keep(changesWanted: number): Promise<void> {
    const { snapshots, tree } = this.#derived;
    const { id } = await this.#derived.decideIndex();
    const found = await snapshots.findRecord(id);
    const before = found?.record.position ?? 0;
    // A snapshot of an older version is useless to a process of this one.
    const usable = found?.age === "older" ? 0 : before;
    const isDue = (await tree.changes.last()) - usable >= changesWanted || this.#documentsMade >= changesWanted;
    // Checked before the engine is loaded.
    if (!isDue) return;
    await this.#follower.refresh();
    const hold = await this.#leases.tryAcquire("snapshot");
    if (hold === undefined) return;
    try {
      await this.#publish(before, usable);
    } catch (error) {
      // A person may delete the snapshots while one is written. Nothing is lost, because records
      // are removed only after the snapshot that contains them is published. This process
      // continues, and the next check retries.
      if (!isHoldfastError(error)) throw error;
      this.#warnOnce(`${tree.layout.index}: no snapshot could be published: ${error.message}`);
    } finally {
      // A lease that cannot be released now ends with this process.
      await hold.release().catch(() => undefined);
    }
  }

  #warnOnce(message: string): void {
    if (message !== this.#warned) this.#derived.tree.ground.ports.host.warn(message);
    this.#warned = message;
  }

  async #publish(before: number, usable: number): Promise<void> {
    const { snapshots, outcomes } = this.#derived;
    // Taken in one step: everything added from here on belongs to a later position.
    const state = this.#follower.findState();
    if (state === undefined || state.position <= usable) return;
    this.#documentsMade = 0;
    await this.#derived.tree.changes.mustBeSame();
    await snapshots.publish(state.index, state.position, state.engine.toBytes());
    await this.#collect(
      state.engine.files().map(({ path }) => path),
      state.position,
    );
    // Only outcomes of the previous snapshot: a process that is a little behind must not start
    // over.
    await outcomes.removeUpTo(before);
  }

  /** Removes documents that were replaced, and those of missing files. */
  async #collect(paths: readonly string[], position: number): Promise<void> {
    const { documents, tree } = this.#derived;
    const known = new Set<string>();
    const pause = new EventLoopYield(tree.ground.ports.clock);
    for (const path of paths) {
      known.add(hashOf(path));
      if (pause.isDue) await pause.take();
    }
    await documents.collect(
      position,
      (hash) => known.has(hash),
      async (path) => (await tree.findEntry(path))?.kind === "file",
    );
  }
}
