// The tools that change files: write, edit, move, remove. None of them overwrites or removes what the
// model has not seen.
import { z } from "zod";
import { isHoldfastError } from "../../index.ts";
import { Refusal } from "../answer.ts";
import { conflictOf } from "../history.ts";
import { fileBytesMax } from "../limits.ts";
import { tool, type Tool } from "../tool.ts";
import { treeStampOf } from "../tree-stamp.ts";
import { readText } from "./looking.ts";

const timeoutMs = 5_000;
const path = z.string().describe("Path relative to the root of the tree, such as src/main.ts");
/** A lone surrogate has no UTF-8: another text than the one that was passed would be written. */
const text = z
  .string()
  .refine((given) => Buffer.byteLength(given) <= fileBytesMax, `a file has at most ${fileBytesMax} bytes here`)
  .refine((given) => !/\p{Surrogate}/u.test(given), "the text has half of a character pair");

const write = tool("write", {
  description:
    "Writes a whole text file. `stamp` is the one that `read` gave you, or null for a file that must not exist yet. If the file has changed since, nothing is written, and the answer shows what changed and by whom.",
  input: z.object({ path, text, stamp: z.string().nullable().describe("From `read`; null: a new file") }),
  does: "replaces",
  call: async (desk, { path: file, text: body, stamp: ifStamp }, signal) => {
    const files = await desk.files();
    try {
      const { stamp, size } = await files.write(file, body, { ifStamp, within: desk.holdOver(file), signal });
      if (stamp !== undefined) desk.seen.remember(file, stamp, body);
      return { text: `Wrote ${file}, ${size} bytes.\nstamp: ${stamp}`, facts: { path: file, stamp, size } };
    } catch (error) {
      throw isHoldfastError(error, "PRECONDITION_FAILED") ? await conflictOf(desk, file, ifStamp) : error;
    }
  },
});

const edit = tool("edit", {
  description:
    "Replaces exact pieces of a text file, all in one write or none. Each `old` must occur exactly once, after the edits before it. Works on the file as it is now, so changes elsewhere in it are kept; with `stamp` it is refused if the file has changed at all.",
  input: z.object({
    path,
    edits: z
      .array(z.object({ old: z.string().min(1), new: text }))
      .min(1)
      .max(200),
    stamp: z.string().optional().describe("From `read`: refuse if the file has changed since"),
  }),
  does: "replaces",
  call: async (desk, { path: file, edits, stamp: ifStamp }, signal) => {
    const [files, locks] = [await desk.files(), await desk.locks()];
    const edited = async (within: Awaited<ReturnType<typeof locks.acquire>>): Promise<string> => {
      const seen = await readText(desk, file, signal);
      if (ifStamp !== undefined && ifStamp !== seen.stamp) throw await conflictOf(desk, file, ifStamp);
      const body = edits.reduce((current, each, index) => replaceOnce(file, current, each, index), seen.text);
      try {
        const { stamp = "" } = await files.write(file, body, { ifStamp: seen.stamp, within, signal });
        desk.seen.remember(file, stamp, body);
        return stamp;
      } catch (error) {
        throw isHoldfastError(error, "PRECONDITION_FAILED") ? await conflictOf(desk, file, seen.stamp) : error;
      }
    };
    const stamp = await locks.withLock(file, edited, { within: desk.holdOver(file), timeoutMs, signal, tag: "edit" });
    return {
      text: `Made ${edits.length} edits in ${file}.\nstamp: ${stamp}`,
      facts: { path: file, stamp, edits: edits.length },
    };
  },
});

function replaceOnce(file: string, body: string, edit: { old: string; new: string }, index: number): string {
  const at = body.indexOf(edit.old);
  const second = at < 0 ? -1 : body.indexOf(edit.old, at + 1);
  if (at >= 0 && second < 0) {
    const edited = body.slice(0, at) + edit.new + body.slice(at + edit.old.length);
    if (Buffer.byteLength(edited) <= fileBytesMax) return edited;
    throw new Refusal("TOO_LARGE", `${file} would have more than ${fileBytesMax} bytes.`, "Split the file.");
  }
  const lineAt = (position: number): number => body.slice(0, position).split("\n").length;
  const found = at < 0 ? "does not occur" : `occurs more than once, in lines ${lineAt(at)} and ${lineAt(second)}`;
  throw new Refusal(
    "NO_MATCH",
    `Edit ${index + 1}: the old text ${found} in ${file}. Nothing was written.`,
    at < 0 ? "Read the file again: blanks and line ends must be the same." : "Pass more of the text around it.",
    { path: file, edit: index + 1 },
  );
}

const move = tool("move", {
  description:
    "Moves a file or a directory in one step. Refuses to replace what is at `to`, unless you pass the stamp of that file.",
  input: z.object({
    from: path,
    to: path,
    replace_stamp: z.string().optional().describe("Stamp of the file at `to` that you have read and want to replace"),
  }),
  does: "replaces",
  call: async (desk, { from, to, replace_stamp: replaced }, signal) => {
    const [files, locks] = [await desk.files(), await desk.locks()];
    const ends = [desk.holdOver(from), desk.holdOver(to)];
    const within = desk.holdOver(from, to) ?? ends[0] ?? ends[1];
    // A move is one grant: within the one lock, it would wait for the other.
    if (ends.every((end) => end !== undefined && end !== desk.holdOver(from, to)))
      throw new Refusal("RESOURCE_BUSY", `You hold one lock over ${from} and another one over ${to}.`, "Release both with `unlock`, and lock a directory above both."); // prettier-ignore
    await using hold = await locks.acquireMove(from, to, { within, timeoutMs, signal, tag: "move" });
    const target = await files.stat(to);
    if (target?.directory === true)
      throw new Refusal("FILE_EXISTS", `${to} is a directory.`, `Move to a path below it, such as ${to}/${from.split("/").at(-1)}.`); // prettier-ignore
    if (target !== undefined && target.stamp !== replaced) throw await conflictOf(desk, to, replaced ?? null);
    await files.move(from, to, { within: hold, signal });
    return { text: `Moved ${from} to ${to}.`, facts: { from, to } };
  },
});

const remove = tool("remove", {
  description:
    "Removes a file, with the stamp that `read` gave you; or a directory with all its files, with the stamp of a deep `list` of it.",
  input: z.object({ path, stamp: z.string().optional().describe("What you have seen of it") }),
  does: "replaces",
  call: async (desk, { path: target, stamp }, signal) => {
    const [files, locks] = [await desk.files(), await desk.locks()];
    const within = desk.holdOver(target);
    await using hold = await locks.acquire(target, { mode: "tree", within, timeoutMs, signal, tag: "remove" });
    const info = await files.stat(target);
    if (info !== undefined) {
      const now = info.directory ? await treeStampOf(files, target, signal) : info.stamp;
      if (stamp === undefined) {
        const how = info.directory ? "List it with `deep`" : "Read it";
        throw new Refusal("NOT_SEEN", `Without a stamp, ${target} is not removed.`, `${how}, and pass the stamp.`);
      }
      if (now !== stamp) throw await conflictOf(desk, target, stamp);
    }
    await files.remove(target, { within: hold, signal });
    return { text: `Removed ${target}.`, facts: { path: target } };
  },
});

export const changing: readonly Tool[] = [write, edit, move, remove];
