// The command `holdfast mcp`: serves one agent over standard input and output.
import { InvalidArgumentError, Option, type Command } from "commander";
import { openFiles, type FileTree, type OpenFilesOptions } from "../../files/index.ts";
import { openHandoff, type Handoff } from "../../handoff/index.ts";
import { isHoldfastError, openStore } from "../../index.ts";
import { findLockRoot } from "../../locks/index.ts";
import { serveMcp, toolNames, type ToolName, type Workplace } from "../../mcp/index.ts";
import { endHelp } from "../help.ts";
import { printable } from "../output.ts";
import { failed, noCreateOption, reportMissing } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { parseDuration } from "../duration.ts";
import { mustBeFolder } from "./location.ts";

interface McpFlags {
  readonly name?: string;
  readonly readOnly?: true;
  readonly tools?: readonly ToolName[];
  readonly box: string;
  readonly lease?: number;
  /** False for `--no-create`. */
  readonly create: boolean;
}

interface OpenWorkplace extends Workplace, AsyncDisposable {}

export function registerMcp(command: Command, run: Run): void {
  command
    .description(
      "Serves a store, or a plain folder, to an agent by the Model Context Protocol over stdin and stdout. Clients of the protocol start it. Guide: docs/agents.md.",
    )
    .argument("<DIR>", "a store, or the folder that agents work on")
    .option("--name <agent>", "shown to others with locks and changes: which agent it was")
    .option("--read-only", "offer only tools that change nothing")
    .addOption(new Option("--tools <names>", "offer only these tools, separated by commas").argParser(parseTools))
    .option("--box <name>", "the box of tasks", "tasks")
    .addOption(
      new Option("--lease <duration>", "locks of an agent that dies are free after this time (default: 30s)").argParser(
        parseDuration,
      ),
    )
    .addOption(noCreateOption("tree"))
    .action(async (directory: string, flags: McpFlags) => {
      mustBeFolder(directory, "a tree of files");
      await using workplace = await open(directory, flags, run);
      if (workplace === undefined) return;
      const { readOnly, tools, box } = flags;
      const onProblem = ({ message }: Error): void => run.output.warning({ name: "Mcp", message: printable(message) });
      await serveMcp(workplace, { readOnly, tools, box, signal: run.signal, onProblem });
    });
  endHelp(command, {
    examples: [
      "holdfast mcp /mnt/shop --name ada",
      "holdfast mcp ~/project --name reviewer --read-only",
      "npx -y holdfast mcp ~/project --name ada --tools read,edit,search",
    ],
    exits: {
      done: "the client closed the connection",
      failed,
      wrongUsage: "wrong usage: an unknown tool",
      missing: "there is no tree in DIR: is the share mounted?",
      verificationFailed: "the store is damaged, or its file system cannot be used",
    },
  });
}

function parseTools(text: string): readonly ToolName[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !(toolNames as readonly string[]).includes(name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no tool ${unknown}; there are ${toolNames.join(", ")}.`);
  return names as readonly ToolName[];
}

/** Opens the store in `directory`; if there is none, the tree of files there, with a box of its own. */
async function open(directory: string, flags: McpFlags, run: Run): Promise<OpenWorkplace | undefined> {
  const { name, lease: leaseMs, readOnly = false } = flags;
  try {
    return await openStore(directory, { create: false, name, leaseMs, readOnly });
  } catch (error) {
    if (!isHoldfastError(error, "NOT_A_STORE")) throw error;
  }
  const found = await findLockRoot(directory);
  const isThere = found?.path === "" && found.hasLocks;
  if (!isThere && (!flags.create || readOnly)) {
    const message = `there is neither a store nor a tree of files in ${directory}: is it the right directory, and is the share mounted?`;
    return reportMissing(run, "NO_TREE", message, directory);
  }
  if (!isThere) run.output.note(`holdfast: making a new tree of files in ${directory}`);
  return new TreeWorkplace(directory, { name, leaseMs, work: !readOnly });
}

/** A plain folder. Its boxes lie beside its records. */
class TreeWorkplace implements OpenWorkplace {
  readonly #directory: string;
  readonly #options: OpenFilesOptions;
  #tree: Promise<FileTree> | undefined;
  readonly #boxes = new Map<string, Promise<Handoff>>();

  constructor(directory: string, options: OpenFilesOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  async files(options: OpenFilesOptions = {}): Promise<FileTree> {
    this.#tree ??= openFiles(this.#directory, { ...this.#options, ...options });
    // The next call tries again.
    this.#tree.catch(() => (this.#tree = undefined));
    return await this.#tree;
  }

  async handoff(box: string): Promise<Handoff> {
    const { leaseMs } = this.#options;
    const opened = this.#boxes.get(box) ?? openHandoff(`${this.#directory}/.holdfast/handoff/${box}`, { leaseMs });
    this.#boxes.set(box, opened);
    opened.catch(() => this.#boxes.delete(box));
    return await opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = [...this.#boxes.values(), ...(this.#tree === undefined ? [] : [this.#tree])];
    for (const part of await Promise.allSettled(opened)) if (part.status === "fulfilled") await part.value.close();
  }
}
