// Decides when a ticket is given up. The death of a worker is not a failure of the work: the worker
// may have been killed, or another ticket may have been the cause. So only deaths of workers that
// worked on nothing else count, and only many of them.
import type { AttemptNote } from "../../handoff/model/handoff.ts";
import { changeBetween } from "../search/foreign-changes.ts";
import type { TaskContext } from "./task-context.ts";
import type { Task } from "./task.ts";

/** After this many deaths the ticket is processed alone. */
export const deathsTogetherMax = 3;
/** After this many more deaths it is set aside. */
export const deathsAloneMax = 10;

/** The earlier attempts, since the ticket was made or replayed. */
export interface EarlierAttempts {
  readonly failures: number;
  readonly deaths: number;
}

/** A ticket that no worker takes until it is replayed. */
export interface GivenUp {
  readonly id: string;
  readonly task: Task;
  readonly reason: string;
  /** True if its workers died. Otherwise the user's function failed. */
  readonly isSetAside: boolean;
}

export interface NamedGivenUp extends GivenUp {
  /** The file or directory; for a session its name and the number of the archive. */
  readonly path: string;
}

/**
 * `history` covers all attempts; those before a replay do not count. An attempt without a recorded
 * failure ended with its worker's death.
 */
export function earlierAttempts(attempt: number, history: readonly AttemptNote[]): EarlierAttempts {
  let failures = 0;
  let before = attempt;
  for (const note of history.toReversed()) {
    if (note.attempt >= before) break;
    before = note.attempt;
    if (note.outcome === "retry") failures++;
  }
  return { failures, deaths: Math.max(0, attempt - 1 - failures) };
}

const setAsideMark = "Set aside";

export function setAsideReason(deaths: number): string {
  return `${setAsideMark}: ${deaths} workers died with it, the last ${deathsAloneMax} of them while they worked on nothing else.`;
}

export function isSetAsideReason(reason: string): boolean {
  return reason.startsWith(`${setAsideMark}:`);
}

/**
 * Returns work that was given up and is still needed: a later change of the same path, or a later
 * summary, replaces the rest.
 */
export async function findGivenUp({
  derived,
  queue,
  sidecars,
}: Pick<TaskContext, "derived" | "queue" | "sidecars">): Promise<NamedGivenUp[]> {
  const subjectOf = async (task: Task): Promise<string | undefined> => {
    if (task.task === "session") return `session ${task.session}, archive ${task.archive}`;
    if (task.task === "summary") return (await sidecars.isReplaced(task)) ? undefined : task.directory;
    const { tree, documents } = derived;
    const change = await tree.changes.find(task.change);
    if (change === undefined || (await tree.findLook(change.path)) === undefined) return undefined;
    const { path, number } = change;
    const later = await changeBetween(tree.changes, path, number, await tree.changes.last());
    const isReplaced =
      later === "many" ? ((await documents.findNewest(path))?.change ?? 0) > number : later !== undefined;
    return isReplaced ? undefined : path;
  };
  const found: NamedGivenUp[] = [];
  for (const each of await queue.givenUp()) {
    const path = await subjectOf(each.task);
    if (path !== undefined) found.push({ ...each, path });
  }
  return found;
}
