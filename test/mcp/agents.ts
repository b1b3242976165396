// Agents for tests: the official client, connected to a server in this process or in one of its own.
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { openStore } from "../../src/index.ts";
import { createMcpServer, type McpOptions } from "../../src/mcp/index.ts";

export const holdfast = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

export interface Answer {
  readonly text: string;
  readonly isError: boolean;
  /** The facts for programs. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export class Agent {
  readonly client: Client;
  readonly pid: number | undefined;

  constructor(client: Client, pid?: number) {
    this.client = client;
    this.pid = pid;
  }

  async call(name: string, args: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Answer> {
    const options = signal === undefined ? {} : { signal };
    const { content, isError, structuredContent } = await this.client.callTool({ name, arguments: args }, options);
    const [first] = content as { text: string }[];
    return { text: first!.text, isError: isError === true, facts: (structuredContent ?? {}) as Answer["facts"] };
  }

  /** The stamp of a file as it is now. */
  async stamp(path: string): Promise<string> {
    return (await this.call("read", { path })).facts["stamp"] as string;
  }
}

/** An agent whose server runs in this process, with a store of its own on the directory. */
export async function connectAgent(directory: string, name: string, options: McpOptions = {}): Promise<Agent> {
  const store = await openStore(directory, { name, leaseMs: 2000 });
  const server = createMcpServer(store, options);
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  await server.connect(serverSide);
  const client = new Client({ name, version: "1" });
  await client.connect(clientSide);
  onTestFinished(async () => {
    await client.close();
    await store.close();
  });
  return new Agent(client);
}

/** An agent whose server is a process, as clients of the protocol start it. */
export async function startAgent(directory: string, name: string, ...flags: string[]): Promise<Agent> {
  const args = [holdfast, "mcp", directory, "--name", name, "--lease", "2s", ...flags];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" });
  const client = new Client({ name, version: "1" });
  await client.connect(transport);
  onTestFinished(async () => await client.close());
  return new Agent(client, transport.pid ?? undefined);
}
