// The parts that are tortured. To add a part, write a file with its task (see task.ts), and add a line to the list
// below. `npm run torture`, the short run of `npm test`, the long runs of `npm run test:deep` and the share bed find it
// here.
import { chainTask } from "./chain.ts";
import { eventsTask } from "./events.ts";
import { filesTask } from "./tasks/files.ts";
import { gateTask } from "./gate.ts";
import { handoffTask } from "./handoff.ts";
import { locksTask, redoTask } from "./locks.ts";
import { objectsTask } from "./tasks/objects.ts";
import { semaphoreTask } from "./semaphore.ts";
import type { TortureTask } from "./task.ts";

const tasks: Readonly<Record<string, TortureTask>> = {
  chain: chainTask,
  gate: gateTask,
  semaphore: semaphoreTask,
  locks: locksTask,
  redo: redoTask,
  events: eventsTask,
  handoff: handoffTask,
  objects: objectsTask,
  files: filesTask,
};

export const tortureParts: readonly string[] = Object.keys(tasks);

export function getTortureTask(part: string): TortureTask {
  const task = tasks[part];
  if (task === undefined) throw new Error(`There is no part "${part}" to torture.`);
  return task;
}
