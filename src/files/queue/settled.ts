// Waits until the work on all changes is done, whichever process does it.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { TicketInfo } from "../../handoff/model/handoff.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Change } from "../model/file-tree.ts";
import type { Tree } from "../tree/tree.ts";
import { findGivenUp } from "./given-up.ts";
import type { IndexSide } from "../index-side.ts";
import type { QueuedTask, TaskQueue } from "./task-queue.ts";

const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;
/** A committed change that is not completed for this long is stuck. */
const stuckMs = 5_000;
/** How many of the pending changes are examined more closely. */
const lookedAtMax = 100;

export interface SettledOptions {
  readonly under: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Waits until all work is done. Rejects if the work of this process failed: another process may
 * succeed, but only the caller knows whether there is one.
 */
export async function waitUntilSettled(side: IndexSide, options: SettledOptions): Promise<void> {
  const { queue, derived } = side;
  const { changes } = derived.tree;
  // An index that a person deleted starts over with a change: refresh before reading the last one.
  if (side.isOn) await side.follower.refresh();
  await waitForOutcomes(side, await changes.last(), options);
  const rest = (await queue.unfinished()).filter((each) => concerns(each, options.under));
  if (rest.length > 0) await mustHaveFunctions(side);
  for (const { id } of rest) await waitForTicket(queue, id, options.signal);
  // Summaries and memories are changes of the tree too. They may have come during the first wait.
  await waitForOutcomes(side, await changes.last(), options);
  await throwIfSetAside(side, options);
}

/** Throws INDEX_FAILED: a task that kills its workers is not done, and no process works on it. */
async function throwIfSetAside(side: IndexSide, { under }: SettledOptions): Promise<void> {
  const concerned = (await findGivenUp(side)).filter(
    ({ task, path, isSetAside }) => isSetAside && (under === "" || (task.task !== "session" && isWithin(path, under))),
  );
  const [first] = concerned;
  if (first === undefined) return;
  const { path, reason, task } = first;
  const more = concerned.length === 1 ? "" : ` So were ${concerned.length - 1} more.`;
  const message = `The work on ${path} (${task.task}) was given up. ${reason}${more} Everything else is done. Find out what kills the worker, then retry it with \`verify\` and \`repair\`.`;
  throw holdfastError("INDEX_FAILED", message, { path });
}

async function waitForOutcomes(side: IndexSide, last: number, { under, signal }: SettledOptions): Promise<void> {
  if (!side.isOn) return;
  const { loops, derived, follower } = side;
  const sleeper = new Sleeper(loops.clock);
  const seenMs = new Map<string, number>();
  const stopListening = loops.onProgress(sleeper.wake);
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
      signal?.throwIfAborted();
      loops.mustBeOpen();
      sleeper.forgetWakeUps();
      const { failure } = side.work.lasting;
      await follower.refresh();
      const pending = await among(derived.tree.changes, follower.pendingUpTo(last), under);
      if (pending.length === 0) return;
      if (failure !== undefined) throw failure.error;
      // A worker may have died after its ticket was given up and before it published the outcome.
      if (pauseMs === pauseMsMax) {
        await buryDeadLetters(side, pending);
        await mustHaveFunctions(side);
        await replaceLostOutcomes(side, pending, seenMs);
        await throwIfStuck(side, pending, seenMs);
      }
      await sleeper.sleep(pauseMs, signal);
    }
  } finally {
    stopListening();
  }
}

/**
 * A deleted outcome never comes again, because its ticket is done. It is unknown what else was
 * deleted with it. So the whole tree is checked again, and these changes are no longer waited for.
 */
async function replaceLostOutcomes(
  side: IndexSide,
  pending: readonly number[],
  seenMs: Map<string, number>,
): Promise<void> {
  const { derived, work } = side;
  const nowMs = side.loops.clock.monotonicMs();
  const lost: number[] = [];
  // Each change up to this one had an outcome or a ticket.
  const passed = (await (await work.log.open()).read()).state.position;
  for (const number of pending.slice(0, lookedAtMax)) {
    if (number > passed) break;
    const ticket = await findTicket(side, number);
    const sinceMs = seenMs.get(`${number}`) ?? nowMs;
    // A ticket exists until the work is done, and for a while after that.
    if (ticket === undefined) seenMs.set(`${number}`, sinceMs);
    const isDone = ticket === undefined ? nowMs - sinceMs >= stuckMs : ticket.state === "archive";
    if (!isDone || (await derived.outcomes.find(number)) !== undefined) continue;
    // Outcomes that a snapshot contains are removed.
    if ((await derived.findSnapshotPosition()) < number) lost.push(number);
  }
  if (lost.length === 0) return;
  await side.announce({ kind: "written", path: "" });
  for (const number of lost) await work.worker.giveUp(number, "Its outcome was deleted.");
}

/** Throws RESOURCE_BUSY if a pending committed change cannot be completed, whichever process committed it. */
async function throwIfStuck(
  { derived, loops }: IndexSide,
  pending: readonly number[],
  seenMs: Map<string, number>,
): Promise<void> {
  const { tree } = derived;
  const { redos } = (await tree.locks.table.read()).state;
  const nowMs = loops.clock.monotonicMs();
  const stuck = redos.filter(({ id }) => nowMs - (seenMs.get(id) ?? nowMs) >= stuckMs);
  for (const { id } of redos) seenMs.set(id, seenMs.get(id) ?? nowMs);
  for (const number of stuck.length > 0 ? pending : []) {
    const paths = pathsOf(await tree.changes.find(number)) ?? [];
    const step = stuck.flatMap(({ steps }) => steps).find(({ target }) => paths.some((path) => isWithin(path, target)));
    if (step === undefined) continue;
    const path = tree.pathOf(step.target);
    const message = `${path} was changed, and the change cannot be completed: something blocks it. It stays locked, and is not indexed, until that is removed. See \`holdfast locks list\`.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }
}

async function among(changes: Tree["changes"], numbers: readonly number[], under: string): Promise<readonly number[]> {
  if (under === "") return numbers;
  const found: number[] = [];
  for (const number of numbers) {
    const paths = pathsOf(await changes.find(number)) ?? [""];
    if (paths.some((path) => isWithin(path, under) || isWithin(under, path))) found.push(number);
  }
  return found;
}

function pathsOf(change: Change | undefined): readonly string[] | undefined {
  return change && [change.path, change.from ?? change.path];
}

/** Throws INDEX_FAILED if no living process can do the work. */
async function mustHaveFunctions({ work, functions }: IndexSide): Promise<void> {
  await work.needed.mustBeThere(functions.names);
}

async function buryDeadLetters(side: IndexSide, pending: readonly number[]): Promise<void> {
  for (const number of pending.slice(0, lookedAtMax)) {
    const ticket = await findTicket(side, number);
    if (ticket?.damaged !== undefined) await renew(side, number);
    else if (ticket?.state === "error") await side.work.worker.giveUp(number, ticket.history.at(-1)?.reason ?? "");
  }
}

/** An unreadable ticket has no effect: announces its change again. */
async function renew(side: IndexSide, number: number): Promise<void> {
  const { derived, queue, work } = side;
  const change = await derived.tree.changes.find(number);
  if (change === undefined || (await queue.stateOf(number)) !== "damaged") return;
  const { kind, path, from } = change;
  await side.announce({ kind, path, ...(from === undefined ? {} : { from }) });
  await work.worker.giveUp(number, "Its ticket cannot be read. The change was announced again.");
}

async function findTicket({ queue, derived }: IndexSide, change: number): Promise<TicketInfo | undefined> {
  return await queue.findByChange(change, await derived.tree.changes.findId(change));
}

/** True if a task concerns `under`. Index tasks are omitted, because their outcomes are awaited. */
function concerns({ task }: QueuedTask, under: string): boolean {
  if (task.task === "index") return false;
  return under === "" || (task.task === "summary" && isWithin(task.directory, under));
}

async function waitForTicket(queue: TaskQueue, id: string, signal: AbortSignal | undefined): Promise<void> {
  try {
    await queue.waitFor(id, signal);
  } catch (error) {
    // The ticket is done and was collected since.
    if (!isHoldfastError(error, "NO_SUCH_TICKET")) throw error;
  }
}
