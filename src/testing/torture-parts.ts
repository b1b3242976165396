// The parts that are tortured. A new one is a file with its task, and a line here.
import { chainTask } from "./torture-chain.ts";
import { eventsTask } from "./torture-events.ts";
import { gateTask } from "./torture-gate.ts";
import { locksTask, redoTask } from "./torture-locks.ts";
import { semaphoreTask } from "./torture-semaphore.ts";
import type { TortureTask } from "./torture-task.ts";

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
