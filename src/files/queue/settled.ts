// Waiting until the work on what has changed is done, whichever process does it.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Failure, Loops } from "../../part/loop.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { ChangeLog } from "../change-log/change-log.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { Follower } from "../search/follower.ts";
import type { QueuedTask, TaskQueue } from "./task-queue.ts";
import type { Worker } from "./worker.ts";

const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;
/** A committed change that is not completed for so long is not only on its way. */
const stuckMs = 5_000;
/** Of the changes that are waited for so many are looked at closer. */
const lookedAtMax = 100;

export interface SettledParts {
  /** False: this process knows of no index and no summaries, and waits for neither. */
  readonly isOn: boolean;
  readonly loops: Loops;
  readonly place: TreePlace;
  readonly changes: ChangeLog;
  readonly follower: Follower;
  readonly queue: TaskQueue;
  readonly worker: Worker;
  /** Whether an outcome was removed because a snapshot has the change. */
  readonly isInSnapshot: (change: number) => Promise<boolean>;
  /** INDEX_FAILED when no living process can do the work. */
  readonly mustHaveFunctions: () => Promise<void>;
  readonly hasOutcome: (change: number) => Promise<boolean>;
  /** Announces a change of its own, and queues it. */
  readonly announce: (change: NewChange) => Promise<void>;
  /** How the work has failed in this process, if it has. */
  readonly findFailure: () => Failure | undefined;
}

export interface SettledOptions {
  readonly under: string;
  readonly signal?: AbortSignal | undefined;
}

/** Rejects when the work of this process has failed: another one may do better, and only the caller knows of one. */
export async function waitUntilSettled(parts: SettledParts, options: SettledOptions): Promise<void> {
  // An index that a person has deleted begins anew with a change: before the last one is asked for.
  if (parts.isOn) await parts.follower.refresh();
  await waitForOutcomes(parts, await parts.changes.last(), options);
  const rest = (await parts.queue.unfinished()).filter((each) => concerns(each, options.under));
  if (rest.length > 0) await parts.mustHaveFunctions();
  for (const { id } of rest) await waitForTicket(parts.queue, id, options.signal);
  // Summaries and memories are changes of the tree, too. They may have come while the first changes were waited for.
  await waitForOutcomes(parts, await parts.changes.last(), options);
}

async function waitForOutcomes(parts: SettledParts, last: number, { under, signal }: SettledOptions): Promise<void> {
  if (!parts.isOn) return;
  const { loops, follower } = parts;
  const sleeper = new Sleeper(loops.clock);
  const seenMs = new Map<string, number>();
  const stopListening = loops.onProgress(sleeper.wake);
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
      signal?.throwIfAborted();
      loops.mustBeOpen();
      sleeper.forgetWakeUps();
      const failure = parts.findFailure();
      await follower.refresh();
      const pending = await among(parts.changes, follower.pendingUpTo(last), under);
      if (pending.length === 0) return;
      if (failure !== undefined) throw failure.error;
      // A worker may have died after a ticket was given up, and before it said so.
      if (pauseMs === pauseMsMax) {
        await buryDeadLetters(parts, pending);
        await parts.mustHaveFunctions();
        await replaceLostOutcomes(parts, pending, seenMs);
        await throwIfStuck(parts, pending, seenMs);
      }
      await sleeper.sleep(pauseMs, signal);
    }
  } finally {
    stopListening();
  }
}

/**
 * An outcome that was deleted never comes again, because its ticket is done. What else was deleted with it is not known:
 * so the whole tree is looked at again, and these changes are not waited for any more.
 */
async function replaceLostOutcomes(
  parts: SettledParts,
  pending: readonly number[],
  seenMs: Map<string, number>,
): Promise<void> {
  const nowMs = parts.loops.clock.monotonicMs();
  const lost: number[] = [];
  for (const number of pending.slice(0, lookedAtMax)) {
    const ticket = await parts.queue.findByChange(number);
    const sinceMs = seenMs.get(`${number}`) ?? nowMs;
    // A ticket is there until the work is done, and for a while after that; a dispatcher makes one that is missing.
    if (ticket === undefined) seenMs.set(`${number}`, sinceMs);
    const isDone = ticket === undefined ? nowMs - sinceMs >= stuckMs : ticket.state === "archive";
    if (isDone && !(await parts.hasOutcome(number)) && !(await parts.isInSnapshot(number))) lost.push(number);
  }
  if (lost.length === 0) return;
  await parts.announce({ kind: "written", path: "" });
  for (const number of lost) await parts.worker.giveUp(number, "Its outcome was deleted.");
}

/** RESOURCE_BUSY when a committed change that is waited for cannot be completed, whichever process has committed it. */
async function throwIfStuck(
  { place, loops, changes }: SettledParts,
  pending: readonly number[],
  seenMs: Map<string, number>,
): Promise<void> {
  const { redos } = (await (await place.locks()).table.read()).state;
  const nowMs = loops.clock.monotonicMs();
  const stuck = redos.filter(({ id }) => nowMs - (seenMs.get(id) ?? nowMs) >= stuckMs);
  for (const { id } of redos) seenMs.set(id, seenMs.get(id) ?? nowMs);
  for (const number of stuck.length > 0 ? pending : []) {
    const change = await changes.find(number);
    const paths = change === undefined ? [] : [change.path, change.from ?? change.path];
    const step = stuck.flatMap(({ steps }) => steps).find(({ target }) => paths.some((path) => isWithin(path, target)));
    if (step === undefined) continue;
    const path = place.pathOf(step.target);
    const message = `${path} was changed, and the change cannot be completed: what is in the way? It stays locked, and is not indexed, until that is gone. See \`holdfast locks list\`.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }
}

async function among(changes: ChangeLog, numbers: readonly number[], under: string): Promise<readonly number[]> {
  if (under === "") return numbers;
  const found: number[] = [];
  for (const number of numbers) {
    const change = await changes.find(number);
    const paths = change === undefined ? [""] : [change.path, change.from ?? change.path];
    if (paths.some((path) => isWithin(path, under) || isWithin(under, path))) found.push(number);
  }
  return found;
}

async function buryDeadLetters({ queue, worker }: SettledParts, pending: readonly number[]): Promise<void> {
  for (const number of pending.slice(0, lookedAtMax)) {
    const ticket = await queue.findByChange(number);
    if (ticket?.state === "error") await worker.giveUp(number, ticket.history.at(-1)?.reason ?? "");
  }
}

/** Of the index the outcomes tell. */
function concerns({ task }: QueuedTask, under: string): boolean {
  if (task.task === "index") return false;
  return under === "" || (task.task === "summary" && isWithin(task.directory, under));
}

async function waitForTicket(queue: TaskQueue, id: string, signal: AbortSignal | undefined): Promise<void> {
  try {
    await queue.waitFor(id, signal);
  } catch (error) {
    // Done, and collected since.
    if (!isHoldfastError(error, "NO_SUCH_TICKET")) throw error;
  }
}
