// The tools that look: read, list, search, changes, who.
import { z } from "zod";
import { isHoldfastError } from "../../index.ts";
import type { HeldLock } from "../../locks/index.ts";
import { Refusal } from "../answer.ts";
import type { Desk } from "../desk.ts";
import { factsOf, lineOf } from "../history.ts";
import { TreeStamp } from "../tree-stamp.ts";
import { answerCharsMax, bounded, changesMax, fileBytesMax, locksMax, pageMax } from "../limits.ts";
import { tool, type Tool } from "../tool.ts";

const path = z.string().describe("Path relative to the root of the tree, such as src/main.ts");
const under = z.string().default("").describe("A directory; default: the whole tree");

/** Reads a text file and its stamp. Refuses directories, binary files and large ones. */
export async function readText(
  desk: Desk,
  file: string,
  signal?: AbortSignal,
): Promise<{ text: string; stamp: string }> {
  const files = await desk.files();
  const info = await files.stat(file);
  if (info?.directory === true)
    throw new Refusal("IS_A_DIRECTORY", `${file} is a directory.`, `Call list with path "${file}".`);
  if (info !== undefined && info.size > fileBytesMax)
    throw new Refusal("TOO_LARGE", `${file} has ${info.size} bytes; at most ${fileBytesMax} are read.`, "Find what you need with `search`."); // prettier-ignore
  try {
    const { text, stamp } = await files.readTextStamped(file, { signal });
    if (text.includes("\0")) throw binary(file);
    desk.seen.remember(file, stamp, text);
    return { text, stamp };
  } catch (error) {
    throw error instanceof TypeError && !isHoldfastError(error) ? binary(file) : error;
  }
}

function binary(file: string): Refusal {
  return new Refusal("NOT_TEXT", `${file} is not UTF-8 text.`, "Leave it alone, or ask a person for a tool that knows its format."); // prettier-ignore
}

const read = tool("read", {
  description:
    "Reads a text file. The answer begins with its stamp: pass that to `write`, so that nothing is overwritten that you have not seen.",
  input: z.object({
    path,
    from_line: z.number().int().min(1).default(1).describe("First line to return"),
    lines: z.number().int().min(1).optional().describe("How many lines; default: as many as fit"),
  }),
  does: "reads",
  call: async (desk, { path: file, from_line: from, lines: wanted }, signal) => {
    const { text, stamp } = await readText(desk, file, signal);
    const all = text.split("\n");
    const upTo = Math.min(all.length, from - 1 + (wanted ?? all.length));
    const shown: string[] = [];
    let size = 0;
    for (const line of all.slice(from - 1, upTo)) {
      size += line.length + 1;
      if (size > answerCharsMax && shown.length > 0) break;
      shown.push(bounded(line));
    }
    const last = from - 1 + shown.length;
    const more = last < all.length ? `; ${all.length - last} more follow, read them with from_line ${last + 1}` : "";
    const body = shown.join("\n");
    const facts = { path: file, stamp, from_line: from, to_line: last, lines: all.length, text: body };
    return { text: `stamp: ${stamp}\nlines ${from} to ${last} of ${all.length}${more}\n\n${body}`, facts };
  },
});

const list = tool("list", {
  description:
    "Lists a directory, or everything below it with `deep`. A deep list names the stamp of the whole directory, which `remove` takes.",
  input: z.object({
    path: under,
    deep: z.boolean().default(false),
    skip: z.number().int().min(0).default(0).describe("For pages: how many entries to skip"),
  }),
  does: "reads",
  call: async (desk, { path: directory, deep, skip }, signal) => {
    const files = await desk.files();
    const entries: { path: string; directory: boolean; size: number }[] = [];
    const stamp = new TreeStamp();
    let position = 0;
    for await (const info of files.list(directory, { deep, signal })) {
      stamp.add(info);
      if (position++ < skip || entries.length === pageMax) continue;
      entries.push({ path: info.path, directory: info.directory, size: info.size });
    }
    const next = position > skip + entries.length ? skip + entries.length : undefined;
    const lines = entries.map((entry) => (entry.directory ? `${entry.path}/` : `${entry.path}  ${entry.size} bytes`));
    const stamps = deep ? [`stamp: ${stamp.end()}`] : [];
    const more = next === undefined ? [] : [`More follow: call again with skip ${next}.`];
    const text = bounded([...stamps, `${position} entries`, ...lines, ...more].join("\n"));
    return { text, facts: { entries, stamp: deep ? stamp.end() : undefined, total: position, next_skip: next } };
  },
});

const search = tool("search", {
  description:
    'Searches the text of all files: words, "phrases", prefix*. Never returns what is gone; a change of the last moment may be missing.',
  input: z.object({ text: z.string(), under, limit: z.number().int().min(1).max(50).default(10) }),
  does: "reads",
  call: async (desk, { text, under: directory, limit }, signal) => {
    const found = await (await desk.files()).search(text, { under: directory, limit, signal });
    const hits = found.map(({ path: file, excerpt }) => ({ path: file, excerpt: excerpt && bounded(excerpt, 500) }));
    const lines = hits.map(({ path: file, excerpt }) => (excerpt === undefined ? file : `${file}\n    ${excerpt}`));
    return { text: bounded(lines.length === 0 ? "Nothing was found." : lines.join("\n")), facts: { hits } };
  },
});

const changes = tool("changes", {
  description:
    "Lists who changed what and when, newest first. With `since`, only changes after that number. A change whose author still holds the lock may not be visible yet.",
  input: z.object({
    since: z.number().int().min(0).default(0).describe("A change number from an earlier answer"),
    before: z.number().int().min(1).optional().describe("For pages: only older changes than this number"),
    under,
  }),
  does: "reads",
  call: async (desk, { since, before, under: directory }, signal) => {
    const files = await desk.files();
    const last = await files.lastChange();
    const found = await files.history({ under: directory, after: since, before, limit: changesMax, signal });
    const lines = found.map(lineOf);
    const head = `last change #${last}${found.length === changesMax ? `; older ones: before ${found.at(-1)!.number}` : ""}`;
    return { text: bounded([head, ...lines].join("\n")), facts: { last, changes: found.map(factsOf) } };
  },
});

const who = tool("who", {
  description: "Shows who holds or waits for locks on or below a path, since when and why.",
  input: z.object({ path: under }),
  does: "reads",
  call: async (desk, { path: directory }) => {
    const all = await (await desk.locks()).list({ under: directory });
    const held = all.filter(({ path: locked }) => !isInternal(locked)).slice(0, locksMax);
    const own = new Set(desk.holds.map(({ id }) => id));
    const facts = held.map((lock) => ({ ...shown(lock), lock: own.has(lock.holdId) ? lock.holdId : undefined, waiting: lock.waiting.map(shown) })); // prettier-ignore
    const lines = held.flatMap((lock) => [
      `${wordsOf(lock)}${own.has(lock.holdId) ? ` — yours, lock ${lock.holdId}` : ""}`,
      ...lock.waiting.map((each) => `    waits: ${wordsOf(each)}`),
    ]);
    return {
      text: bounded(lines.length === 0 ? "Nobody holds a lock there." : lines.join("\n")),
      facts: { locks: facts },
    };
  },
});

/** A lock of Holdfast itself, such as that of the index. */
function isInternal(locked: string): boolean {
  return locked.replace(/^\//, "").startsWith(".holdfast/");
}

type Seen = Pick<HeldLock, "path" | "mode" | "shared" | "holder" | "since" | "tag">;

function shown({ path: locked, mode, shared, holder, since, tag }: Seen): Record<string, unknown> {
  return {
    path: locked,
    mode,
    shared,
    by: holder.name ?? `process ${holder.pid} on ${holder.host}`,
    state: holder.state,
    since,
    note: tag,
  };
}

function wordsOf(lock: Seen): string {
  const { path: locked, mode, by, since, note, state } = shown(lock) as Record<string, string | Date | undefined>;
  const why = note === undefined ? "" : `, ${String(note)}`;
  const alive = state === "alive" ? "" : ` (${String(state)})`;
  return `${locked === "" ? "." : String(locked)} (${String(mode)}) by ${String(by)}${alive} since ${(since as Date).toISOString()}${why}`;
}

export const looking: readonly Tool[] = [read, list, search, changes, who];
