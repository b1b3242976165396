// Agents that share one workspace: each edits, moves and deletes notes while the others search. No server, and no agent
// overwrites what another has written meanwhile.
// Run it: node node_modules/holdfast/dist/examples/agent-workspace/agents.js FOLDER (here: node dist/examples/agent-workspace/agents.js FOLDER)
// Start it several times on the same folder, on one machine or on many.
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isHoldfastError } from "holdfast";
import { openFiles, type FileTree } from "holdfast/files";

/** What a directory is about, for the next agent that looks: a model would write something better. */
const summarize = async (directory: string, entries: readonly string[]) => ({
  abstract: `${directory === "" ? "The workspace" : directory} has ${entries.length} entries.`,
  overview: entries.map((entry) => `- ${entry}`).join("\n"),
});

export async function openWorkspace(folder: string): Promise<FileTree> {
  return await openFiles(folder, {
    summarize,
    sessions: {
      archiveSummary: async (messages) => `${messages.length} messages, the last: ${messages.at(-1)?.content}`,
      // The same archive gives the same paths: after a crash it is done again.
      extract: async ({ session, number, user, summary }) => [
        { path: `memories/${user}/${session}-${number}.md`, text: summary ?? "" },
      ],
    },
  });
}

/** An agent thinks longer than a lock should be held: it writes only if the note is still as it was read. */
export async function improveNote(
  files: FileTree,
  path: string,
  think: (text: string) => Promise<string>,
): Promise<void> {
  for (;;) {
    const stamp = (await files.stat(path))?.stamp ?? null;
    const text = stamp === null ? "" : await files.readText(path);
    const better = await think(text);
    try {
      await files.write(path, better, { ifStamp: stamp });
      return;
    } catch (error) {
      // Another agent was quicker: think again, about what it wrote.
      if (!isHoldfastError(error, "PRECONDITION_FAILED", "RESOURCE_BUSY")) throw error;
    }
  }
}

/** One round of an agent: it adds a line to a shared note, keeps one of its own, and searches. */
export async function runAgent(files: FileTree, name: string): Promise<string[]> {
  await improveNote(files, "notes/plan.md", async (text) => `${text}- ${name} was here\n`);
  await files.write(`inbox/${name}.md`, `A draft of ${name} about wolves.`);
  await files.move(`inbox/${name}.md`, `notes/${name}.md`);
  const session = await files.session(`work-of-${name}`, { user: name });
  await session.append(
    { role: "user", content: `${name}, write about wolves.` },
    { role: "assistant", content: "Done." },
  );
  await session.commit();
  await files.settled();
  return (await files.search("wolves", { under: "notes" })).map(({ path }) => path);
}

async function main(folder: string | undefined): Promise<void> {
  if (folder === undefined) throw new Error("Name the folder of the workspace.");
  await using files = await openWorkspace(folder);
  const found = await runAgent(files, `agent-${process.pid}`);
  console.log(`Found ${found.join(", ")}.`);
  console.log(await files.readText("notes/.overview.md"));
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  await main(process.argv[2]);
