// The tools that agents get: no change that they have not seen is overwritten, and every refusal says
// what to do.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { toolNames } from "../../src/mcp/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { connectAgent, type Agent } from "./agents.ts";

async function pair(): Promise<{ ada: Agent; bob: Agent; files: string }> {
  const directory = join(makeScratch(), "store");
  const ada = await connectAgent(directory, "ada");
  return { ada, bob: await connectAgent(directory, "bob"), files: join(directory, "files") };
}

const conflict = { isError: true, facts: { error: "CONFLICT" } };

it("a file that another agent or a person has changed is not overwritten, and the answer shows what changed", async () => {
  const { ada, bob, files } = await pair();
  const { facts } = await ada.call("write", { path: "a.md", text: "one\ntwo\nthree\n", stamp: null });
  expect(await bob.call("write", { path: "a.md", text: "mine", stamp: null })).toMatchObject(conflict);
  await bob.call("write", { path: "a.md", text: "one\n2\nthree\n", stamp: await bob.stamp("a.md") });
  const refused = await ada.call("write", { path: "a.md", text: "lost", stamp: facts["stamp"] });
  expect(refused).toMatchObject(conflict);
  expect(refused.text).toContain("-two\n+2");
  expect(refused.text).toMatch(/#2 .* bob: written a\.md/);
  expect(refused.facts["stamp"]).toBe(await bob.stamp("a.md"));
  // A person with an editor leaves no change in the log.
  const seen = await ada.stamp("a.md");
  writeFileSync(join(files, "a.md"), "by hand\n");
  expect(await ada.call("write", { path: "a.md", text: "lost", stamp: seen })).toMatchObject(conflict);
  expect(await ada.call("remove", { path: "a.md", stamp: seen })).toMatchObject(conflict);
  expect(await ada.call("edit", { path: "a.md", stamp: seen, edits: [{ old: "hand", new: "x" }] })).toMatchObject(
    conflict,
  );
  expect(readFileSync(join(files, "a.md"), "utf8")).toBe("by hand\n");
});

it("several edits are made together or not at all, and keep what others changed elsewhere in the file", async () => {
  const { ada, bob } = await pair();
  await ada.call("write", { path: "a", text: "one two three two", stamp: null });
  const edit = async (...edits: { old: string; new: string }[]): Promise<unknown> => await ada.call("edit", { path: "a", edits }); // prettier-ignore
  expect(await edit({ old: "one", new: "1" }, { old: "two", new: "2" })).toMatchObject({ facts: { error: "NO_MATCH", edit: 2 } }); // prettier-ignore
  expect(await edit({ old: "one", new: "1" }, { old: "four", new: "4" })).toMatchObject({
    facts: { error: "NO_MATCH" },
  });
  expect((await ada.call("read", { path: "a" })).facts["text"]).toBe("one two three two");
  await bob.call("edit", { path: "a", edits: [{ old: "three", new: "3" }] });
  expect(await edit({ old: "one two", new: "1 2" }, { old: "3 two", new: "3 2" })).toMatchObject({ isError: false });
  expect((await ada.call("read", { path: "a" })).facts["text"]).toBe("1 2 3 2");
});

it("edits of one file by many callers at once are all in it", async () => {
  const { ada, bob } = await pair();
  const marks = Array.from({ length: 8 }, (_, index) => `<${index}>`);
  await ada.call("write", { path: "a", text: marks.join("\n"), stamp: null });
  const edits = marks.map((mark, index) => (index % 2 === 0 ? ada : bob).call("edit", { path: "a", edits: [{ old: mark, new: `done ${index}` }] })); // prettier-ignore
  expect((await Promise.all(edits)).filter(({ isError }) => isError)).toEqual([]);
  expect((await ada.call("read", { path: "a" })).facts["text"]).toBe(
    marks.map((_, index) => `done ${index}`).join("\n"),
  );
});

it("nothing that was not seen is replaced by a move, or removed", async () => {
  const { ada, bob, files } = await pair();
  for (const path of ["a", "b", "d/x"]) await ada.call("write", { path, text: path, stamp: null });
  const list = async (): Promise<unknown> => (await ada.call("list", { path: "d", deep: true })).facts["stamp"];
  const listed = await list();
  expect(await ada.call("move", { from: "a", to: "b" })).toMatchObject(conflict);
  expect(await ada.call("move", { from: "a", to: "d" })).toMatchObject({ facts: { error: "FILE_EXISTS" } });
  expect(await ada.call("remove", { path: "a" })).toMatchObject({ facts: { error: "NOT_SEEN" } });
  expect(await ada.call("remove", { path: "d" })).toMatchObject({ facts: { error: "NOT_SEEN" } });
  await bob.call("write", { path: "d/y", text: "new", stamp: null });
  const refused = await ada.call("remove", { path: "d", stamp: listed });
  expect(refused).toMatchObject(conflict);
  expect(refused.text).toContain("bob: written d/y");
  const again = await list();
  writeFileSync(join(files, "d/z"), "a person");
  expect(await ada.call("remove", { path: "d", stamp: again })).toMatchObject(conflict);
  expect(await ada.call("remove", { path: "d", stamp: await list() })).toMatchObject({ isError: false });
  expect(await ada.call("move", { from: "a", to: "b", replace_stamp: await ada.stamp("b") })).toMatchObject({
    isError: false,
  });
  expect((await ada.call("list", { deep: true })).facts["entries"]).toEqual([{ path: "b", directory: false, size: 1 }]);
  expect(await ada.call("remove", { path: "b", stamp: await ada.stamp("b") })).toMatchObject({ isError: false });
});

it("a lock keeps others out and lets its owner work, names its owner, and ends with the connection", async () => {
  const { ada, bob } = await pair();
  const { facts } = await ada.call("lock", { path: "src", tree: true, note: "renaming" });
  expect(await ada.call("write", { path: "src/a", text: "1", stamp: null })).toMatchObject({ isError: false });
  expect(await ada.call("edit", { path: "src/a", edits: [{ old: "1", new: "2" }] })).toMatchObject({ isError: false });
  expect(await ada.call("move", { from: "src/a", to: "src/b" })).toMatchObject({ isError: false });
  const refused = await bob.call("lock", { path: "src/a" });
  expect(refused).toMatchObject({
    isError: true,
    facts: { error: "LOCK_TIMEOUT", holders: [{ path: "src", by: "ada" }] },
  });
  expect(refused.text).toContain("renaming");
  expect((await bob.call("who", { path: "src" })).text).toContain("src (tree) by ada");
  await ada.call("lock", { path: "docs" });
  expect(await ada.call("move", { from: "src/b", to: "docs" })).toMatchObject({ facts: { error: "RESOURCE_BUSY" } });
  // What is there can be read, and who did it.
  expect((await bob.call("changes", { under: "src" })).text).toContain("ada: moved src/b (was src/a)");
  expect(await ada.call("unlock", { lock: facts["lock"] })).toMatchObject({ isError: false });
  expect(await ada.call("unlock", { lock: facts["lock"] })).toMatchObject({ facts: { error: "LOCK_LOST" } });
  await ada.call("lock", { path: "src" });
  await ada.client.close();
  expect(await bob.call("lock", { path: "src", wait_seconds: 30 })).toMatchObject({ isError: false });
});

it("a task is published once under its key, is taken by one agent, and returns when that one leaves", async () => {
  const { ada, bob } = await pair();
  const { facts } = await ada.call("task_publish", { text: "count the shelves", key: "shelves" });
  expect(await bob.call("task_publish", { text: "count the shelves", key: "shelves" })).toMatchObject({ facts: { duplicate: true, task: facts["task"] } }); // prettier-ignore
  expect((await ada.call("task_take")).text).toContain("count the shelves");
  expect(await bob.call("task_take")).toMatchObject({ facts: { task: null } });
  expect(await bob.call("task_done", { task: facts["task"] })).toMatchObject({ facts: { error: "CLAIM_LOST" } });
  await ada.client.close();
  const again = await bob.call("task_take", { wait_seconds: 30 });
  expect(again.facts["task"]).toBe(facts["task"]);
  expect(await bob.call("task_fail", { task: facts["task"], reason: "no ladder" })).toMatchObject({ isError: false });
  expect((await bob.call("task_take", { wait_seconds: 30 })).facts).toMatchObject({ attempt: 2 });
  const ends = await Promise.all(
    [1, 2].map((result) => bob.call("task_done", { task: facts["task"], result: `${result}` })),
  );
  expect(ends.filter(({ isError }) => !isError)).toHaveLength(1);
});

it("a cancelled take leaves the next task to others", async () => {
  const { ada, bob } = await pair();
  const abort = new AbortController();
  const waiting = ada.call("task_take", { wait_seconds: 30 }, abort.signal);
  abort.abort();
  await expect(waiting).rejects.toThrow();
  await bob.call("task_publish", { text: "t" });
  expect((await bob.call("task_take", { wait_seconds: 30 })).facts["task"]).not.toBe(null);
});

it("what was said in a session is found after it was committed", async () => {
  const { ada, bob } = await pair();
  const messages = [{ role: "user", content: "The green shelf is empty." }];
  await ada.call("session_append", { session: "monday", messages });
  expect(await ada.call("session_commit", { session: "monday" })).toMatchObject({ facts: { archive: 1, memory: "memories/monday/1.md" } }); // prettier-ignore
  await vi.waitFor(async () => {
    const { facts } = await bob.call("search", { text: "green shelf" });
    expect(facts["hits"]).toMatchObject([{ path: "memories/monday/1.md" }]);
  });
  expect((await ada.call("session_commit", { session: "monday" })).text).toContain("no new messages");
  expect(await ada.call("session_append", { session: "../src", messages })).toMatchObject({ isError: true });
});

it("a client that subscribed to a file is told of its change, and of no other", async () => {
  const { ada, bob } = await pair();
  await ada.call("write", { path: "a b.md", text: "1", stamp: null });
  const told: string[] = [];
  ada.client.setNotificationHandler("notifications/resources/updated", ({ params }) => void told.push(params.uri));
  const { resources } = await ada.client.listResources();
  const { uri } = resources[0]!;
  expect(await ada.client.readResource({ uri })).toMatchObject({ contents: [{ text: "1" }] });
  await ada.client.subscribeResource({ uri });
  // The subscription begins with the changes that follow it: the first of them may be missed by a slow machine.
  await vi.waitFor(async () => {
    await bob.call("write", { path: "other", text: `${Math.random()}`, stamp: null });
    await bob.call("edit", { path: "a b.md", edits: [{ old: "1", new: "1" }] });
    expect(told).toContain(uri);
  });
  expect(new Set(told)).toEqual(new Set([uri]));
});

it("answers are bounded, and what cannot be shown is refused with a reason", async () => {
  const { ada, files } = await pair();
  await ada.call("write", { path: "long", text: "x".repeat(99).concat("\n").repeat(2000), stamp: null });
  const first = await ada.call("read", { path: "long" });
  expect(first.text.length).toBeLessThan(60_000);
  const next = Number(first.facts["to_line"]) + 1;
  expect(first.text).toContain(`from_line ${next}`);
  expect((await ada.call("read", { path: "long", from_line: next, lines: 2 })).facts).toMatchObject({ from_line: next, to_line: next + 1 }); // prettier-ignore
  writeFileSync(join(files, "image"), Buffer.from([0x89, 0x50, 0xff, 0x00]));
  writeFileSync(join(files, "zeros"), Buffer.alloc(10));
  writeFileSync(join(files, "huge"), Buffer.alloc(5 * 1024 * 1024, "x"));
  mkdirSync(join(files, "directory"));
  const refusals = { image: "NOT_TEXT", zeros: "NOT_TEXT", huge: "TOO_LARGE", directory: "IS_A_DIRECTORY", none: "NO_SUCH_FILE" }; // prettier-ignore
  for (const [path, error] of Object.entries({
    ...refusals,
    "../x": "INVALID_PATH",
    "/etc/passwd": "INVALID_PATH",
    ".holdfast/x": "INVALID_PATH",
  }))
    // prettier-ignore
    expect({ path, ...(await ada.call("read", { path })) }).toMatchObject({ path, facts: { error } });
  expect(await ada.call("read", { pth: "long" })).toMatchObject({ isError: true });
  expect(await ada.call("read", { path: "long", line: 3 })).toMatchObject({ isError: true });
  expect(await ada.call("write", { path: "half", text: "\ud800", stamp: null })).toMatchObject({ isError: true });
});

it("offers the tools that were asked for, and none that changes anything if it is read-only", async () => {
  const directory = join(makeScratch(), "store");
  const namesOf = async (agent: Agent): Promise<string[]> =>
    (await agent.client.listTools()).tools.map(({ name }) => name);
  const all = await connectAgent(directory, "all");
  expect(await namesOf(all)).toEqual(toolNames);
  expect(await namesOf(await connectAgent(directory, "few", { tools: ["edit", "read"] }))).toEqual(["read", "edit"]);
  const reader = await connectAgent(directory, "reader", { readOnly: true });
  expect(await namesOf(reader)).toEqual(["read", "list", "search", "changes", "who"]);
  await expect(reader.call("write", { path: "a", text: "", stamp: null })).rejects.toThrow("not found");
  await expect(connectAgent(directory, "odd", { tools: ["rm" as "read"] })).rejects.toThrow("there is no tool rm");
});
