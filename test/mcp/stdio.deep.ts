// Servers as clients start them: processes that are killed and stopped, and input that is not what
// the protocol says.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast, startAgent } from "./agents.ts";

it("what a killed agent held is free for others within its lease", async () => {
  const directory = makeScratch();
  const [ada, bob] = [await startAgent(directory, "ada"), await startAgent(directory, "bob")];
  await ada.call("lock", { path: "src", tree: true });
  await ada.call("task_publish", { text: "t" });
  const { facts } = await ada.call("task_take");
  expect(await bob.call("lock", { path: "src/a" })).toMatchObject({ isError: true });
  process.kill(ada.pid!, "SIGKILL");
  expect(await bob.call("lock", { path: "src/a", wait_seconds: 45 })).toMatchObject({ isError: false });
  expect((await bob.call("task_take", { wait_seconds: 45 })).facts["task"]).toBe(facts["task"]);
});

it("an agent that slept past its lease overwrites nothing that was written meanwhile", async () => {
  const directory = makeScratch();
  const [ada, bob] = [await startAgent(directory, "ada"), await startAgent(directory, "bob")];
  const { facts } = await ada.call("write", { path: "a", text: "1", stamp: null });
  await ada.call("lock", { path: "a" });
  process.kill(ada.pid!, "SIGSTOP");
  const { facts: locked } = await bob.call("lock", { path: "a", wait_seconds: 45 });
  expect(await bob.call("write", { path: "a", text: "2", stamp: facts["stamp"] })).toMatchObject({ isError: false });
  await bob.call("unlock", { lock: locked["lock"] });
  process.kill(ada.pid!, "SIGCONT");
  expect(await ada.call("write", { path: "a", text: "lost", stamp: facts["stamp"] })).toMatchObject({ isError: true });
  expect((await bob.call("read", { path: "a" })).facts["text"]).toBe("2");
});

it("a line that is not JSON, an unknown method and wrong arguments get an error, and the next request its answer", async () => {
  const server = spawn(process.execPath, [holdfast, "mcp", makeScratch()], { stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void server.kill("SIGKILL"));
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const say = (line: unknown): void =>
    void server.stdin.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  const hear = async (): Promise<unknown> => JSON.parse((await lines.next()).value as string);
  const ask = async (id: number, method: string, params: object): Promise<unknown> => {
    say({ jsonrpc: "2.0", id, method, params });
    return await hear();
  };
  say("{ this is not JSON");
  const opening = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "0" } };
  expect(await ask(1, "initialize", opening)).toMatchObject({ id: 1, result: { serverInfo: { name: "holdfast" } } });
  say({ jsonrpc: "2.0", method: "notifications/initialized" });
  say("[]");
  say("\u0000\u0000");
  expect(await ask(2, "tools/nonsense", {})).toMatchObject({ id: 2, error: { code: -32601 } });
  expect(await ask(3, "tools/call", { name: "write", arguments: { path: 7, text: {}, stamp: [] } })).toMatchObject({ id: 3, result: { isError: true } }); // prettier-ignore
  const text = "x".repeat(5 * 1024 * 1024);
  expect(await ask(4, "tools/call", { name: "write", arguments: { path: "big", text, stamp: null } })).toMatchObject({ id: 4, result: { isError: true } }); // prettier-ignore
  expect(await ask(5, "tools/call", { name: "list", arguments: {} })).toMatchObject({ id: 5, result: { structuredContent: { entries: [] } } }); // prettier-ignore
  server.stdin.end();
  expect(await once(server, "exit")).toEqual([0, null]);
});
