// Processes the events of a log under a lease: batch after batch from the checkpoint on, then new
// events as they are appended.
import type { SequencedEvent } from "../../common.ts";
import { Deadline } from "../../durable/wait/deadline.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { unlessAborted, type LoopSignals } from "../../part/loop.ts";
import type { LeasedWork } from "../../part/progress/checkpoints.ts";
import type { WorkOutcome } from "../../part/under-lease.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { EventStore } from "../model/event-store.ts";
import type { Query } from "../model/query.ts";

/** Minimum time between checkpoints while no event matches. */
const idleSaveMs = 250;

export type EventSource = Pick<EventStore, "read" | "head">;

export interface EventWork {
  readonly source: EventSource;
  readonly access: LogAccess;
  readonly query: Query;
  /** Number of events per call of `commit`. */
  readonly batch: number;
  /**
   * Handles these events, then moves the checkpoint to `position`. Returns false if the checkpoint did not count,
   * because another process took over. After a full batch it may defer the checkpoint: it is called again later, at
   * last without events.
   */
  readonly commit: (events: readonly SequencedEvent[], position: number) => Promise<boolean>;
  /** Ends the work at the head. Default false: waits for more events. */
  readonly untilHead?: boolean;
  /** Called before each round. If it returns false, the work ends. */
  readonly isWanted?: () => Promise<boolean>;
}

/** The reason that ends a wait when a checkpoint is due. */
const idle: unique symbol = Symbol("idle");

export async function processEvents(
  work: EventWork,
  leased: LeasedWork,
  hold: PathHold,
  { stopping, lettingGo }: LoopSignals,
): Promise<WorkOutcome> {
  const { source, access, query, batch } = work;
  const { clock } = access.ports;
  let { position } = leased.saved;
  let savedMs = -Infinity;

  /** Returns undefined if the work continues. */
  const commit = async (events: readonly SequencedEvent[], upTo: number): Promise<WorkOutcome | undefined> => {
    if (hold.signal.aborted) return "lost";
    const done = await unlessAborted(work.commit(events, upTo), lettingGo);
    if (done === undefined) return "abandoned";
    if (!done.value) return "lost";
    position = upTo;
    return stopping.aborted ? "finished" : undefined;
  };

  const readUpTo = async (head: number): Promise<WorkOutcome | undefined> => {
    let events: SequencedEvent[] = [];
    for await (const event of source.read(query, { after: position, upTo: head, signal: stopping })) {
      events.push(event);
      if (events.length < batch) continue;
      const outcome = await commit(events, event.position);
      if (outcome !== undefined) return outcome;
      events = [];
    }
    if (events.length > 0) return await commit(events, head);
    position = head;
    return undefined;
  };

  /** Returns the head once it has moved, or undefined if a checkpoint is due before that. */
  const waitForMore = async (): Promise<number | undefined> => {
    const leftMs = position > leased.saved.position ? savedMs + idleSaveMs - clock.monotonicMs() : Infinity;
    if (leftMs <= 0) return undefined;
    const deadline = new Deadline(clock, {
      timeoutMs: leftMs,
      signal: stopping,
      closed: hold.signal,
      timedOut: () => idle,
    });
    try {
      return await access.waitBeyond(position, { signal: deadline.signal });
    } catch (error) {
      if (error === idle) return undefined;
      throw error;
    } finally {
      deadline.cancel();
    }
  };

  /** Before it stops, saves how far events were handled or skipped, so that they are not read again. */
  const finish = async (): Promise<WorkOutcome> => {
    if (hold.signal.aborted) return "lost";
    if (!stopping.aborted || lettingGo.aborted || position === leased.saved.position) return "finished";
    return (await commit([], position)) ?? "finished";
  };

  try {
    while (!stopping.aborted) {
      if (hold.signal.aborted || (await work.isWanted?.()) === false) break;
      const head = work.untilHead ? await source.head() : await waitForMore();
      let outcome: WorkOutcome | undefined;
      if (head !== undefined && head > position) outcome = await readUpTo(head);
      else if (position > leased.saved.position) {
        outcome = await commit([], position);
        savedMs = clock.monotonicMs();
      } else if (work.untilHead) return "finished";
      if (outcome === "finished") break;
      if (outcome !== undefined) return outcome;
    }
  } catch (error) {
    if (hold.signal.aborted && error === hold.signal.reason) return "lost";
    if (!stopping.aborted || error !== stopping.reason) throw error;
  }
  return await finish();
}
