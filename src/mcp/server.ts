// A server of the Model Context Protocol for one connection.
import { McpServer } from "@modelcontextprotocol/server";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { FilesOptions, FileTree } from "../files/index.ts";
import type { Handoff } from "../handoff/index.ts";
import { version } from "../index.ts";
import { failureOf, resultOf } from "./answer.ts";
import { Desk } from "./desk.ts";
import { memoriesOf, memoriesDirectory } from "./memories.ts";
import { offerFiles, Subscriptions } from "./resources.ts";
import { toolNames, type Tool, type ToolName } from "./tool.ts";
import { changing } from "./tools/changing.ts";
import { holding } from "./tools/holding.ts";
import { looking } from "./tools/looking.ts";
import { sessions } from "./tools/sessions.ts";
import { tasks } from "./tools/tasks.ts";

/** A place that agents work in: a `Store`, or an object with a tree of files and a box. */
export interface Workplace {
  /** Returns the tree of files. */
  files(options?: Pick<FilesOptions, "sessions">): Promise<FileTree>;
  /** Returns the box of this name. Without it, no tools for tasks are offered. */
  handoff?(box: string): Promise<Handoff>;
}

/** Options of `createMcpServer`. */
export interface McpOptions {
  /** Offers only tools that change nothing. Default false. */
  readOnly?: boolean | undefined;
  /** The tools to offer. Default: all. */
  tools?: readonly ToolName[] | undefined;
  /** The name of the box of tasks. Default "tasks". */
  box?: string | undefined;
  /**
   * Opens the tree with your own functions for sessions. Default: the messages of an archive become
   * a file in `memories`.
   */
  sessions?: FilesOptions["sessions"] | undefined;
  /**
   * The era of the connection: `serveStdio` and `createMcpHandler` pass it to their factory. Default
   * "legacy", for a server that you connect to a transport yourself.
   */
  era?: "legacy" | "modern" | undefined;
}

const optionNames: OptionNames<McpOptions> = { readOnly: true, tools: true, box: true, sessions: true, era: true };
const defaultSessions = { extract: memoriesOf };
const allTools: readonly Tool[] = [...looking, ...changing, ...holding, ...sessions, ...tasks];
const changingOrder = `Read a file before you change it, and pass its stamp: a change that you have not seen is never overwritten. Prefer \`edit\` for parts of a file. After a CONFLICT, read what changed and merge.`;
const instructions = `Several agents and people work on this tree of files at once. ${changingOrder} Use \`lock\` with \`tree\` only for work on many files that must not be mixed with the work of others. \`who\` and \`changes\` show what the others do.`;

/**
 * Creates a server of the Model Context Protocol for one connection to a store. It uses the store as
 * the caller has opened it, and does not close it; locks and tasks of the connection end with it.
 *
 * Throws a TypeError for an unknown option or tool.
 *
 * @example
 * ```ts
 * const store = await openStore("/mnt/shop", { name: "agent 7" });
 * serveStdio(({ era }) => createMcpServer(store, { era }));
 * ```
 */
export function createMcpServer(store: Workplace, options: McpOptions = {}): McpServer {
  checkOptions("createMcpServer", options, optionNames);
  const { readOnly = false, box = "tasks", sessions: given, era = "legacy" } = options;
  const offered = offeredTools(options, store.handoff !== undefined);
  const server = new McpServer(
    { name: "holdfast", version },
    {
      instructions: readOnly ? "A tree of files, to read." : instructions,
      capabilities: { resources: { subscribe: true } },
    },
  );
  const extracting = readOnly ? {} : { sessions: given ?? defaultSessions };
  const desk = new Desk({
    files: async () => await store.files(extracting),
    tasks: async () => await store.handoff!(box),
    memories: given === undefined ? memoriesDirectory : undefined,
  });
  const subscriptions = new Subscriptions(server, () => desk, era);
  for (const { name, description, input, hints, call } of offered)
    server.registerTool(name, { description, inputSchema: input, annotations: hints }, async (args, { mcpReq }) => {
      subscriptions.resume();
      try {
        return resultOf(await call(desk, args, mcpReq.signal));
      } catch (error) {
        return failureOf(error);
      }
    });
  offerFiles(server, () => desk);
  if (era === "modern") subscriptions.follow();
  server.server.onclose = () => {
    subscriptions.stop();
    void desk.close();
  };
  return server;
}

function offeredTools({ tools, readOnly = false }: McpOptions, hasBox: boolean): readonly Tool[] {
  const unknown = (tools ?? []).find((name) => !toolNames.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`createMcpServer: there is no tool ${unknown}; there are ${toolNames.join(", ")}.`);
  return allTools.filter(
    ({ name, isReading }) =>
      (tools ?? toolNames).includes(name) && (isReading || !readOnly) && (hasBox || !name.startsWith("task_")),
  );
}
