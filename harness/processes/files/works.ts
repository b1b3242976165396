// Names the work that a process of the failure tables does on a tree, and opens the tree for it.
import { IndexedFiles, type IndexedFilesOptions } from "../../../src/files/indexed-files.ts";
import { openTree } from "../../../src/files/tree/open-tree.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { crashPointDisk } from "../crash-point-disk.ts";
import { TreeSteps } from "./steps.ts";

/** One tree and one prepared directory outside of it. */
export interface TreeSite {
  readonly root: string;
  readonly staged: string;
}

export interface OpenWorkedOptions extends Pick<IndexedFilesOptions, "leaseMs" | "work" | "openFolder"> {
  /** True if directories have summaries. */
  readonly hasSummaries: boolean;
  /** Called with each point that the process reaches. The process continues when it resolves. */
  readonly at?: ((point: string) => Promise<void>) | undefined;
}

/** The operations of a caller. */
export type OperationName =
  | "writes a file"
  | "updates a file"
  | "writes a file below directories that are missing"
  | "removes a file"
  | "removes a directory"
  | "moves a file"
  | "moves a directory"
  | "moves a directory to one that is missing"
  | "adds a directory"
  | "adds a new state of a directory"
  | "commits a session";

export type WorkName = OperationName | "works on what is queued";

type Work = (files: IndexedFiles, site: TreeSite) => Promise<unknown>;

export const works: Readonly<Record<WorkName, Work>> = {
  "writes a file": (files) => files.write("b.md", "new wolf b"),
  "updates a file": (files) => files.update("b.md", (text) => `updated ${Buffer.from(text ?? []).toString()}`),
  "writes a file below directories that are missing": (files) => files.write("new/deep/c.md", "wolf c"),
  "removes a file": (files) => files.remove("b.md"),
  "removes a directory": (files) => files.remove("a"),
  "moves a file": (files) => files.move("b.md", "a/b.md"),
  "moves a directory": (files) => files.move("a", "c"),
  "moves a directory to one that is missing": (files) => files.move("a", "new/a"),
  "adds a directory": (files, { staged }) => files.add("guide", staged),
  "adds a new state of a directory": (files, { staged }) => files.add("a", staged),
  "commits a session": async (files) => await (await files.session(sessionName)).commit(),
  "works on what is queued": async (files) => {
    // Runs one task at a time, so that the order of the points does not depend on chance.
    files.work({ concurrency: 1 });
    await files.settled();
  },
};

export const sessionName = "talk";

/** Gives every function that a program may give. Each is a point of its own. */
export async function openWorked(ports: Ports, { root }: TreeSite, options: OpenWorkedOptions): Promise<IndexedFiles> {
  const { leaseMs, work, openFolder, hasSummaries, at = async () => undefined } = options;
  const { stepOf } = new TreeSteps(root);
  const opened = await openTree({ ...ports, disk: crashPointDisk(ports.disk, stepOf, at) }, root, { leaseMs });
  return await IndexedFiles.open(opened, {
    leaseMs,
    work,
    ...(openFolder === undefined
      ? {}
      : {
          openFolder: async (path) => {
            const folder = await openFolder(path);
            return { ...folder, disk: crashPointDisk(folder.disk, stepOf, at) };
          },
        }),
    timeoutMs: 60_000,
    graceMs: 100,
    retry: { attempts: 5, backoffMs: { min: 10, max: 20 } },
    extract: async (_path, content) => {
      const text = await content.text();
      await at("while a file is extracted");
      return text;
    },
    ...(hasSummaries
      ? {
          summarize: async (directory, entries) => {
            await at(`while "${directory}" is summarised`);
            return summaryOf(directory, entries);
          },
        }
      : {}),
    sessions: {
      archiveSummary: async (messages) => {
        await at("while the messages are summarised");
        return `${messages.length} messages`;
      },
      extract: async ({ number, messages }) => {
        await at("while memories are extracted");
        return [{ path: `memories/${number}.md`, text: `wolf ${messages.map(({ content }) => content).join()}` }];
      },
    },
  });
}

export function summaryOf(
  directory: string,
  entries: readonly string[],
): { readonly abstract: string; readonly overview: string } {
  return { abstract: `"${directory}" has ${entries.length} entries`, overview: entries.join() };
}
