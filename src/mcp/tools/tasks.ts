// The tools of tasks: agents give each other work by way of a box.
import { z } from "zod";
import { answerCharsMax, bounded, waitSecondsMax, writtenCharsMax } from "../limits.ts";
import { tool, type Tool } from "../tool.ts";

/** The file of a task that holds its text. */
const textName = "task.md";
const task = z.string().describe("The id that `task_take` gave you");

const publish = tool("task_publish", {
  description:
    "Publishes a task for one of the agents. With a `key`, the same task is published once, however often you call.",
  input: z.object({
    text: z
      .string()
      .min(1)
      .max(answerCharsMax)
      .describe("What is to be done, complete in itself; name files for anything long"),
    key: z.string().min(1).max(500).optional().describe("Names the task: a second publish under it is ignored"),
    group: z.string().min(1).max(500).optional().describe("Tasks of one group are done one after the other"),
  }),
  does: "adds",
  call: async (desk, { text, key, group }) => {
    const { id, duplicate } = await (await desk.tasks()).publish({ [textName]: text }, { key, group });
    const said = duplicate ? `There is already a task under this key: ${id}.` : `Published task ${id}.`;
    return { text: said, facts: { task: id, duplicate } };
  },
});

const take = tool("task_take", {
  description:
    "Takes the next task. Only you have it, until you end it with `task_done` or `task_fail`; if your connection ends, another agent gets it.",
  input: z.object({ wait_seconds: z.number().min(0).max(waitSecondsMax).default(0) }),
  does: "adds",
  call: async (desk, { wait_seconds: wait }, signal) => {
    desk.mustHaveRoom();
    const delivery = await (await desk.tasks()).take({ waitMs: wait * 1000, signal });
    if (delivery === undefined) return { text: "There is no task now.", facts: { task: null } };
    const { id, key, group, attempt, files } = delivery;
    try {
      const hasText = files.some(({ name }) => name === textName);
      const text = hasText ? bounded(await delivery.text(textName)) : "";
      await desk.keepTask(delivery);
      const names = files.map(({ name, size }) => ({ name, size }));
      const others = names.filter(({ name }) => name !== textName).map(({ name, size }) => `${name} (${size} bytes)`);
      const list = others.length === 0 ? "" : `\nfiles: ${others.join(", ")}`;
      const facts = { task: id, key, group, attempt, text, files: names };
      return { text: `task: ${id}\nattempt ${attempt}${list}\n\n${text}`, facts };
    } catch (error) {
      // The model never learns of this claim.
      await delivery[Symbol.asyncDispose]();
      throw error;
    }
  },
});

const done = tool("task_done", {
  description: "Ends a task that you took: it is done, and `result` is kept with it.",
  input: z.object({ task, result: z.string().max(writtenCharsMax).optional() }),
  does: "adds",
  call: async (desk, { task: id, result }) => {
    await desk.settleTask(id, (delivery) => delivery.ack(result));
    return { text: `Task ${id} is done.`, facts: { task: id } };
  },
});

const fail = tool("task_fail", {
  description: "Gives a task that you took back: for another attempt, or, with `retry` false, for a person to look at.",
  input: z.object({
    task,
    reason: z.string().min(1).max(2000),
    retry: z.boolean().default(true),
    delay_seconds: z.number().min(0).max(86_400).default(0),
  }),
  does: "adds",
  call: async (desk, { task: id, reason, retry, delay_seconds: delay }) => {
    const options = { reason, delayMs: delay * 1000 };
    await desk.settleTask(id, (delivery) => (retry ? delivery.retry(options) : delivery.fail(reason)));
    return { text: `Task ${id} ${retry ? "waits for another attempt" : "is set aside"}.`, facts: { task: id, retry } };
  },
});

export const tasks: readonly Tool[] = [publish, take, done, fail];
