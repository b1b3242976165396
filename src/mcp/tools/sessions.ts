// The tools of sessions: a conversation is kept message by message, archived, and found again.
import { z } from "zod";
import { writtenCharsMax } from "../limits.ts";
import { tool, type Tool } from "../tool.ts";

const session = z
  .string()
  .regex(/^\w[\w.-]{0,99}$/, "letters, digits, and . _ - inside; at most 100 characters")
  .describe("Id of the session");

const append = tool("session_append", {
  description: "Appends messages to a session. They are kept durably, also if you end before the session is committed.",
  input: z.object({
    session,
    messages: z
      .array(z.object({ role: z.string().max(100), content: z.string().max(writtenCharsMax) }))
      .min(1)
      .max(200),
  }),
  does: "adds",
  call: async (desk, { session: id, messages }) => {
    const opened = await (await desk.files()).session(id);
    await opened.append(...messages);
    return {
      text: `Kept ${messages.length} messages of session ${id}.`,
      facts: { session: id, appended: messages.length },
    };
  },
});

const commit = tool("session_commit", {
  description: "Archives the messages of a session. What is worth remembering becomes files that `search` finds.",
  input: z.object({ session }),
  does: "adds",
  call: async (desk, { session: id }, signal) => {
    const committed = await (await (await desk.files()).session(id)).commit({ signal });
    if (committed === undefined) return { text: `Session ${id} has no new messages.`, facts: { session: id } };
    const { archive } = committed;
    const memory = desk.memories === undefined ? undefined : `${desk.memories}/${id}/${archive}.md`;
    const where = memory === undefined ? "" : ` It will be at ${memory} in a moment.`;
    return { text: `Archived session ${id} as number ${archive}.${where}`, facts: { session: id, archive, memory } };
  },
});

export const sessions: readonly Tool[] = [append, commit];
