// Three scripted agents rename a function in all files of one tree at once. Each has a server of its
// own, started as clients of the Model Context Protocol start it, and is killed at random. At the end
// an audit counts: every file renamed, every finished task in the log once, nothing locked.
//
//   npm install holdfast @modelcontextprotocol/client
//   node refactor.mjs [FOLDER]
import { mkdtemp } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const folder = process.argv[2] ?? (await mkdtemp(join(tmpdir(), "holdfast-agents-")));
const packageFile = createRequire(import.meta.url).resolve("holdfast/package.json");
const command = join(dirname(packageFile), "dist/cli/bin.cjs");
const fileCount = 24;
const killsMin = 6;
let kills = 0;

/** A connected agent: `call` returns the facts of a tool, and throws what the tool refused. */
async function connect(name) {
  const args = [command, "mcp", folder, "--name", name, "--lease", "2s"];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" });
  const client = new Client({ name, version: "1.0.0" });
  await client.connect(transport);
  const call = async (tool, args = {}) => {
    const { isError, structuredContent, content } = await client.callTool({ name: tool, arguments: args });
    if (isError) throw Object.assign(new Error(content[0].text), { code: structuredContent?.error });
    return structuredContent;
  };
  return { call, pid: transport.pid, close: () => client.close() };
}

/** Does one task: renames in one file, and adds a line to the log. Both may have been done before a kill. */
async function refactor(call, { task, text }) {
  const path = text.trim();
  const { text: before } = await call("read", { path });
  const at = before.split("colour(").length - 1;
  if (at > 0)
    await call("write", {
      path,
      text: before.replaceAll("colour(", "color("),
      stamp: await stampOf(call, path, before),
    });
  const { text: log } = await call("read", { path: "LOG.md" });
  if (!log.includes(`- ${path}\n`))
    await call("edit", { path: "LOG.md", edits: [{ old: "<!-- end -->", new: `- ${path}\n<!-- end -->` }] });
  await call("task_done", { task, result: `${at} places` });
}

async function stampOf(call, path, expected) {
  const { text, stamp } = await call("read", { path });
  if (text !== expected) throw Object.assign(new Error(`${path} changed`), { code: "CONFLICT" });
  return stamp;
}

/** Works until the box is empty. A killed server is started again, as a client would. */
async function work(name, agents) {
  for (;;) {
    const agent = await connect(name);
    agents.set(name, agent.pid);
    try {
      for (;;) {
        const taken = await agent.call("task_take", { wait_seconds: 5 });
        if (taken.task === null) return await agent.close();
        try {
          await refactor(agent.call, taken);
        } catch (error) {
          if (error.code === undefined) throw error;
          await agent.call("task_fail", { task: taken.task, reason: error.message });
        }
      }
    } catch {
      await agent.close().catch(() => undefined);
    }
  }
}

const lead = await connect("lead");
await lead.call("write", { path: "LOG.md", text: "# Renamed\n\n<!-- end -->\n", stamp: null });
for (let index = 0; index < fileCount; index++) {
  const path = `src/part-${index}.js`;
  await lead.call("write", { path, text: `draw(colour("red"));\nfill(colour("blue"));\n`, stamp: null });
  await lead.call("task_publish", { text: path, key: path });
}

const agents = new Map();
const working = Promise.all(["ada", "bob", "cleo"].map((name) => work(name, agents)));
let isOver = false;
const killing = (async () => {
  while (!isOver && kills < killsMin) {
    await sleep(150 + Math.random() * 500);
    const names = [...agents.keys()];
    const name = names[Math.floor(Math.random() * names.length)];
    if (isOver || name === undefined) continue;
    try {
      process.kill(agents.get(name), "SIGKILL");
      agents.delete(name);
      kills++;
    } catch {
      // It has just ended by itself.
    }
  }
})();
await working;
isOver = true;
await killing;

const problems = [];
const { text: log } = await lead.call("read", { path: "LOG.md" });
for (let index = 0; index < fileCount; index++) {
  const path = `src/part-${index}.js`;
  const { text } = await lead.call("read", { path });
  if (text !== `draw(color("red"));\nfill(color("blue"));\n`) problems.push(`${path} is not renamed: ${text}`);
  const lines = log.split(`- ${path}\n`).length - 1;
  if (lines !== 1) problems.push(`${path} is ${lines} times in the log`);
}
const { locks } = await lead.call("who");
if (locks.length > 0) problems.push(`still locked: ${locks.map(({ path }) => path).join(", ")}`);
const { task } = await lead.call("task_take");
if (task !== null) problems.push(`task ${task} is left`);
await lead.close();
console.log(`${fileCount} files renamed by 3 agents, ${kills} kills, ${problems.length} problems.`);
for (const problem of problems) console.log(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
