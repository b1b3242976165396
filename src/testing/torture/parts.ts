// The parts that are tortured. A new one is a file with its task, and a line here.
import { chainTask } from "./chain.ts";
import { eventsTask } from "./events.ts";
import { gateTask } from "./gate.ts";
import { locksTask, redoTask } from "./locks.ts";
import { semaphoreTask } from "./semaphore.ts";
import type { TortureTask } from "./task.ts";

const tasks: Readonly<Record<string, TortureTask>> = {
  chain: chainTask,
  gate: gateTask,
  semaphore: semaphoreTask,
  locks: locksTask,
  redo: redoTask,
  events: eventsTask,
};

export const tortureParts: readonly string[] = Object.keys(tasks);

export function getTortureTask(part: string): TortureTask {
  const task = tasks[part];
  if (task === undefined) throw new Error(`There is no part "${part}" to torture.`);
  return task;
}
