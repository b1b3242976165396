// The dispatcher: one of all processes makes the tickets that an operation did not make, because its process died.
import { holdfastError } from "../../errors.ts";
import { checksumOf } from "../../format/checksum.ts";
import type { Leases } from "../../part/leases.ts";
import type { LoopSignals } from "../../part/loop.ts";
import { Checkpoints, type LeasedWork, type MarkedSequence } from "../../part/progress/checkpoints.ts";
import { underLease } from "../../part/under-lease.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Outcomes } from "../documents/outcomes.ts";
import type { Change } from "../model/file-tree.ts";
import type { TreePlace } from "../tree/tree-place.ts";

/**
 * So long an operation has time to make its ticket itself, which carries the tree lock of an add. One that comes first
 * without it does no harm: its worker waits until the lock lapses.
 */
export const graceMsDefault = 2_000;
const pauseMs = 500;

export interface DispatcherParts {
  readonly place: TreePlace;
  readonly leases: Leases;
  readonly outcomes: Outcomes;
  /** Makes the ticket of a change, unless there is one. */
  readonly enqueue: (change: Change) => Promise<string>;
  /** Whether this process has made it. */
  readonly isEnqueued: (change: number) => boolean;
  readonly graceMs: number;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  /** When this process has first seen a change, by its monotonic clock. */
  readonly #seenMs = new Map<number, number>();

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Until it is stopped. */
  async run(signals: LoopSignals): Promise<void> {
    const { place, leases } = this.#parts;
    const checkpoints = await this.open();
    const sleeper = new Sleeper(place.ground.ports.clock);
    await underLease(leases, "dispatch", signals, async (hold) => {
      const work = await checkpoints.take(hold.fence);
      if (work === undefined) return "lost";
      while (!signals.stopping.aborted) {
        if (hold.signal.aborted || !(await work.orLost(() => this.pass(work)))) return "lost";
        await sleeper.sleep(Math.min(pauseMs, this.#parts.graceMs), signals.stopping).catch(() => undefined);
      }
      await work.end();
      return "finished";
    });
  }

  /** Up to which change all tickets are made. */
  async open(): Promise<Checkpoints> {
    const { place } = this.#parts;
    const { ports, staging, id } = place.ground;
    const checkpoints = await Checkpoints.open(staging, `${place.layout.directory}/dispatched`, {
      ground: id,
      bootId: ports.host.bootId,
      sequence: sequenceOf(place),
    });
    await checkpoints.begin(0);
    return checkpoints;
  }

  /** False when another process has taken over. */
  async pass(work: LeasedWork): Promise<boolean> {
    let { position } = work.saved;
    const changes = await this.#parts.place.changes.readAfter(position);
    // Of all of them: the times that they are given run at once, and not one after the other.
    const nowMs = this.#parts.place.ground.ports.clock.monotonicMs();
    for (const { number } of changes) if (!this.#seenMs.has(number)) this.#seenMs.set(number, nowMs);
    for (const change of changes) {
      if (!(await this.#isQueued(change))) break;
      this.#seenMs.delete(change.number);
      position = change.number;
    }
    return position === work.saved.position || (await work.save(position));
  }

  async #isQueued(change: Change): Promise<boolean> {
    const { place, outcomes, isEnqueued, enqueue, graceMs } = this.#parts;
    if (isEnqueued(change.number) || (await outcomes.find(change.number)) !== undefined) return true;
    const nowMs = place.ground.ports.clock.monotonicMs();
    if (nowMs - (this.#seenMs.get(change.number) ?? nowMs) < graceMs) return false;
    await enqueue(change);
    return true;
  }
}

function sequenceOf({ changes, layout, disk }: TreePlace): MarkedSequence {
  return {
    findMark: async (position) => {
      if (position === 0) return "00000000";
      const change = await changes.find(position);
      return change === undefined ? undefined : checksumOf(JSON.stringify(change));
    },
    rewound: (position) => {
      const path = layout.changes;
      const message = `${path} is not the change log that was worked on: change ${position} is another one now. Was an older copy restored over a newer one? Restore the whole folder ${layout.directory}, or delete it to begin anew.`;
      return holdfastError("CORRUPT", message, { path });
    },
    mayLag: disk.volume.kind !== "local",
  };
}
