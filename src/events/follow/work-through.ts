// Working through the events of a log under a lease: batch after batch from the checkpoint on, then whatever comes.
import type { SequencedEvent } from "../../common.ts";
import { Deadline } from "../../durable/wait/deadline.ts";
import { isHoldfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { EventStore } from "../model/event-store.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { Query } from "../model/query.ts";
import type { LeasedWork } from "./tenure.ts";
import type { Following } from "./following.ts";
import { inHand, type LoopSignals } from "./loop.ts";

/** How often a checkpoint is made only because of events that do not concern this work. */
const idleSaveMs = 250;

export type EventSource = Pick<EventStore, "read" | "head">;

export interface Work {
  readonly source: EventSource;
  readonly access: LogAccess;
  readonly query: Query;
  /** Events at a time. */
  readonly batch: number;
  /**
   * Does what is to be done with these events, and then moves the checkpoint to `position`. False when that did not count. It may put it off while a batch is full: then it is called again, at last
   * without events.
   */
  readonly commit: (events: readonly SequencedEvent[], position: number) => Promise<boolean>;
  /** Ends when it has come to the head. Default: it stays. */
  readonly untilHead?: boolean;
  /** Asked before each round: whether this is still to be done. */
  readonly isWanted?: () => Promise<boolean>;
}

/** "over": nothing of it comes any more. "lost": somebody else does it now, or will. "left": something may still be going on. */
export type Outcome = "over" | "lost" | "left";

/** What ends a wait that has become too long. */
const idle: unique symbol = Symbol("idle");

export async function workThrough(
  work: Work,
  tenure: LeasedWork,
  hold: PathHold,
  { stopping, lettingGo }: LoopSignals,
): Promise<Outcome> {
  const { source, access, query, batch } = work;
  const { clock } = access.ports;
  let { position } = tenure.saved;
  let savedMs = -Infinity;

  /** Undefined: go on. */
  const commit = async (events: readonly SequencedEvent[], upTo: number): Promise<Outcome | undefined> => {
    if (hold.signal.aborted) return "lost";
    const done = await inHand(work.commit(events, upTo), lettingGo);
    if (done === undefined) return "left";
    if (!done.value) return "lost";
    position = upTo;
    return stopping.aborted ? "over" : undefined;
  };

  const readUpTo = async (head: number): Promise<Outcome | undefined> => {
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

  /** The head as soon as there is something new; undefined when a checkpoint is due before that. */
  const waitForMore = async (): Promise<number | undefined> => {
    const leftMs = position > tenure.saved.position ? savedMs + idleSaveMs - clock.monotonicMs() : Infinity;
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

  /** It was stopped: what was gathered, or passed over, need not be gone through again. */
  const finish = async (): Promise<Outcome> => {
    if (hold.signal.aborted) return "lost";
    if (!stopping.aborted || lettingGo.aborted || position === tenure.saved.position) return "over";
    return (await commit([], position)) ?? "over";
  };

  try {
    while (!stopping.aborted) {
      if (hold.signal.aborted || (await work.isWanted?.()) === false) break;
      const head = work.untilHead ? await source.head() : await waitForMore();
      let outcome: Outcome | undefined;
      if (head !== undefined && head > position) outcome = await readUpTo(head);
      else if (position > tenure.saved.position) {
        outcome = await commit([], position);
        savedMs = clock.monotonicMs();
      } else if (work.untilHead) return "over";
      if (outcome === "over") break;
      if (outcome !== undefined) return outcome;
    }
  } catch (error) {
    if (hold.signal.aborted && error === hold.signal.reason) return "lost";
    if (!stopping.aborted || error !== stopping.reason) throw error;
  }
  return await finish();
}

/**
 * Runs `work` under the lease `name`, and again when it was lost: one who slept past his lease goes on as one of those who wait. Ends when `work` has come to an end, or
 * when the loop is stopped.
 */
export async function underLease(
  following: Following,
  name: string,
  { stopping }: LoopSignals,
  work: (hold: PathHold) => Promise<Outcome>,
): Promise<void> {
  while (!stopping.aborted) {
    let hold: PathHold;
    try {
      hold = await following.lease(name, stopping);
    } catch (error) {
      if (stopping.aborted) return;
      // It slept while it waited.
      if (isHoldfastError(error, "LOCK_LOST")) continue;
      throw error;
    }
    try {
      if ((await work(hold)) !== "lost") return;
    } finally {
      // What the work says is what counts; a lease that could not be released ends with this process.
      await hold.release().catch(() => undefined);
    }
  }
}
