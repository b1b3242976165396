// The tools that reserve: lock and unlock.
import { z } from "zod";
import { isHoldfastError } from "../../index.ts";
import { Refusal } from "../answer.ts";
import { waitSecondsMax } from "../limits.ts";
import { tool, type Tool } from "../tool.ts";

const lock = tool("lock", {
  description:
    "Reserves a path for you: other agents can read it, and cannot change it. Your own calls work under it. It ends with `unlock`, with your connection, or when you changed nothing under it for `minutes`. For single files you rarely need it: `write` and `edit` never overwrite what you have not seen.",
  input: z.object({
    path: z.string().describe("Path relative to the root of the tree; it need not exist"),
    tree: z.boolean().default(false).describe("True: everything below it as well"),
    note: z.string().max(200).optional().describe("Why, for others to read"),
    wait_seconds: z.number().min(0).max(waitSecondsMax).default(0),
    minutes: z.number().positive().max(240).default(30),
  }),
  does: "adds",
  call: async (desk, { path, tree, note, wait_seconds: wait, minutes }, signal) => {
    desk.mustHaveRoom();
    const locks = await desk.locks();
    const mode = tree ? "tree" : "exact";
    try {
      const options = { mode, timeoutMs: wait * 1000, idleMs: minutes * 60_000, signal, tag: note } as const;
      const hold = await locks.acquire(path, { ...options, within: desk.holdOver(path) });
      await desk.keepHold(hold);
      const { id, fence } = hold;
      return { text: `Locked ${path} (${mode}).\nlock: ${id}`, facts: { lock: id, path, mode, fence } };
    } catch (error) {
      if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      const holders = error.blockedBy.map(({ path: held, holder, since, tag }) => {
        const name = holder.name ?? `process ${holder.pid} on ${holder.host}`;
        return { path: held, by: name, since, note: tag };
      });
      const words = holders.map(({ path: held, by, since, note: why }) => `${held} is held by ${by} since ${since.toISOString()}${why === undefined ? "" : `, ${why}`}`); // prettier-ignore
      const message = [`${path} is not free.`, ...words].join("\n");
      throw new Refusal("LOCK_TIMEOUT", message, "Do something else and try again, or pass wait_seconds.", { holders });
    }
  },
});

const unlock = tool("unlock", {
  description: "Releases a lock of yours.",
  input: z.object({ lock: z.string().describe("The id that `lock` gave you") }),
  does: "adds",
  call: async (desk, { lock: id }) => {
    const { requests } = await desk.releaseHold(id);
    const path = requests.map((each) => each.path).join(", ");
    return { text: `Released ${path}.`, facts: { lock: id, path } };
  },
});

export const holding: readonly Tool[] = [lock, unlock];
