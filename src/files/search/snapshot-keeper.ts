// The keeper of snapshots: one of all processes publishes what its engine has, and removes what that makes superfluous.
import { isHoldfastError } from "../../errors.ts";
import type { Leases } from "../../part/leases.ts";
import type { LoopSignals } from "../../part/loop.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Documents } from "../documents/documents.ts";
import type { IndexRecord } from "../documents/index-record.ts";
import { hashOf } from "../documents/layout.ts";
import type { Outcomes } from "../documents/outcomes.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { Follower } from "./follower.ts";
import type { Snapshots } from "./snapshots.ts";

const pauseMs = 2_000;
/** A snapshot is worth its writing when so many changes are not in the last one, */
const changesMin = 200;
/** or, for a process that ends, so many. */
const changesMinAtEnd = 20;

export interface SnapshotKeeperParts {
  readonly place: TreePlace;
  readonly leases: Leases;
  readonly follower: Follower;
  readonly snapshots: Snapshots;
  readonly documents: Documents;
  readonly outcomes: Outcomes;
  readonly decideIndex: () => Promise<IndexRecord>;
}

export class SnapshotKeeper {
  readonly #parts: SnapshotKeeperParts;
  #documentsMade = 0;
  /** The last one. */
  #warned = "";

  constructor(parts: SnapshotKeeperParts) {
    this.#parts = parts;
  }

  /** Until it is stopped. */
  async run({ stopping }: LoopSignals): Promise<void> {
    const sleeper = new Sleeper(this.#parts.place.ground.ports.clock);
    while (!stopping.aborted) {
      await sleeper.sleep(pauseMs, stopping).catch(() => undefined);
      if (!stopping.aborted) await this.keep(changesMin);
    }
    await this.keep(changesMinAtEnd);
  }

  /** This process has made so many documents. */
  noteDocuments(count: number): void {
    this.#documentsMade += count;
  }

  /** Publishes a snapshot, if the last one lacks so many changes, or so many documents of this process. */
  async keep(changesWanted: number): Promise<void> {
    const { follower, snapshots, leases, place } = this.#parts;
    const { id } = await this.#parts.decideIndex();
    const before = (await snapshots.findRecord(id))?.record.position ?? 0;
    const isDue = (await place.changes.last()) - before >= changesWanted || this.#documentsMade >= changesWanted;
    // Before the engine is loaded for it.
    if (!isDue) return;
    await follower.refresh();
    const hold = await leases.tryAcquire("snapshot");
    if (hold === undefined) return;
    try {
      await this.#publish(before);
    } catch (error) {
      // A person may delete the snapshots while one is written. What only a snapshot has is removed after it is
      // published, so nothing is lost, and the work of this process goes on: the next look tries again.
      if (!isHoldfastError(error)) throw error;
      this.#warnOnce(`${place.layout.index}: no snapshot could be published: ${error.message}`);
    } finally {
      // A lease that cannot be released now ends with this process.
      await hold.release().catch(() => undefined);
    }
  }

  #warnOnce(message: string): void {
    if (message !== this.#warned) this.#parts.place.ground.ports.host.warn(message);
    this.#warned = message;
  }

  async #publish(before: number): Promise<void> {
    const { follower, snapshots, outcomes } = this.#parts;
    // Taken in one step: what is added from here on is of a later position.
    const state = follower.findState();
    if (state === undefined || state.position <= before) return;
    this.#documentsMade = 0;
    await snapshots.publish(state.index, state.position, state.engine.toBytes());
    await this.#collect(
      state.engine.files().map(({ path }) => path),
      state.position,
    );
    // Those of the last snapshot: a process that is a little behind must not begin anew.
    await outcomes.removeUpTo(before);
  }

  /** Documents that were replaced, and those of files that are gone. */
  async #collect(paths: readonly string[], position: number): Promise<void> {
    const { documents, place } = this.#parts;
    const known = new Set(paths.map(hashOf));
    await documents.collect(
      position,
      (hash) => known.has(hash),
      async (path) => (await place.findLook(path))?.kind === "file",
    );
  }
}
