// Two agents work in one folder. Each has a server of the Model Context Protocol of its own, as its client would start it.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const folder = process.argv[2] ?? "shared/project";
const bin = join(dirname(createRequire(import.meta.url).resolve("holdfast/package.json")), "dist/cli/bin.cjs");

/** An agent. In its client it is one line: npx -y holdfast mcp FOLDER --name ada */
async function start(name: string) {
  const args = [bin, "mcp", folder, "--name", name];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" });
  const client = new Client({ name, version: "1.0.0" });
  await client.connect(transport);
  const call = async (tool: string, facts: Record<string, unknown>) => {
    const { structuredContent } = await client.callTool({ name: tool, arguments: facts });
    return structuredContent as Record<string, string>;
  };
  return { call, client, pid: transport.pid! };
}
const [ada, bob] = await Promise.all([start("ada"), start("bob")]);

await ada.call("write", { path: "PLAN.md", text: "- paint the shelf\n", stamp: null });
const seen = await bob.call("read", { path: "PLAN.md" });
await ada.call("edit", { path: "PLAN.md", edits: [{ old: "shelf", new: "door" }] });

const refused = await bob.call("write", { path: "PLAN.md", text: "- buy paint\n", stamp: seen["stamp"] });
console.log("bob writes what he has seen:", refused["error"]);
const again = await bob.call("read", { path: "PLAN.md" });
await bob.call("write", { path: "PLAN.md", text: `${again["text"]}- buy paint\n`, stamp: again["stamp"] });
console.log((await ada.call("read", { path: "PLAN.md" }))["text"]?.trim());

// For work that takes longer than one write: a reservation, which others see and wait for.
await ada.call("lock", { path: "src", tree: true, note: "renames a function" });
console.log("bob locks a file in it:", (await bob.call("lock", { path: "src/main.js" }))["error"]);
process.kill(ada.pid, "SIGKILL");
const lock = await bob.call("lock", { path: "src/main.js", wait_seconds: 30 });
console.log("after ada's end:", lock["path"]);
await bob.client.close();
