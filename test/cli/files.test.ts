// `holdfast files`: what a script can rely on.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openFiles } from "../../src/files/index.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], input = ""): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  async function* stdin(): AsyncGenerator<string> {
    if (input !== "") yield input;
  }
  const pipes = {
    stdin: stdin(),
    stdout: { write: (text: string | Uint8Array) => (written.stdout += Buffer.from(text).toString()) },
    stderr: { write: (text: string | Uint8Array) => (written.stderr += Buffer.from(text).toString()) },
  };
  return { exitCode: await runCommandLine(args, pipes, new AbortController().signal), ...written };
}

const jsonOf = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

test("a file is written, read, moved and removed", async () => {
  const folder = makeScratch();
  const first = await run(["files", "write", folder, "notes/plan.md", "--json"], "one");
  expect(first.exitCode).toBe(0);
  const { stamp } = jsonOf(first.stdout);
  expect(await run(["files", "cat", folder, "notes/plan.md"])).toMatchObject({ exitCode: 0, stdout: "one" });
  expect(await run(["files", "write", folder, "notes/plan.md", "--if-new"], "two")).toMatchObject({ exitCode: 1 });
  expect(await run(["files", "write", folder, "notes/plan.md", "--if-stamp", String(stamp)], "two")).toMatchObject({
    exitCode: 0,
  });
  expect(await run(["files", "write", folder, "notes/plan.md", "--if-stamp", String(stamp)], "three")).toMatchObject({
    exitCode: 1,
  });
  expect(await run(["files", "mv", folder, "notes/plan.md", "old/plan.md"])).toMatchObject({ exitCode: 0 });
  expect(readFileSync(join(folder, "old/plan.md"), "utf8")).toBe("two");
  const status = jsonOf((await run(["files", "status", folder, "--json"])).stdout);
  expect(status).toMatchObject({ files: 1, bytes: 3, locks: [] });
  expect((await run(["files", "status", folder, "old/plan.md"])).stdout).toContain("3 bytes, stamp ");
  expect(await run(["files", "rm", folder, "old"])).toMatchObject({ exitCode: 0, stdout: "Removed old.\n" });
  for (const verb of ["cat", "rm", "status"])
    expect(await run(["files", verb, folder, "old/plan.md"])).toMatchObject({ exitCode: 3, stdout: "" });
});

test("a prepared directory is taken in, under the name that is free", async () => {
  const folder = makeScratch();
  const stage = (text: string): string => {
    const staged = join(folder, "staged");
    mkdirSync(staged);
    writeFileSync(join(staged, "a.md"), text);
    return staged;
  };
  const tree = join(folder, "team");
  expect(await run(["files", "add", tree, "docs/guide", stage("1")])).toMatchObject({
    exitCode: 0,
    stdout: "docs/guide\n",
  });
  expect(existsSync(join(folder, "staged"))).toBe(false);
  const second = await run(["files", "add", tree, "docs/guide", stage("2"), "--naming", "suffix", "--json"]);
  expect(jsonOf(second.stdout)).toEqual({ path: "docs/guide_1", task: expect.any(String) });
  expect(await run(["files", "add", tree, "docs/guide", stage("3"), "--naming", "fail"])).toMatchObject({
    exitCode: 1,
  });
  expect(readFileSync(join(tree, "docs/guide/a.md"), "utf8")).toBe("1");
});

test("a lock in the way is told, with its holder, and ends with 75", async () => {
  const folder = makeScratch();
  await using files = await openFiles(folder);
  await files.write("a", "1");
  await using _hold = await (await files.locks()).acquire("a", { tag: "by hand" });
  const busy = await run(["files", "rm", folder, "a", "--timeout", "0s"]);
  expect(busy).toMatchObject({ exitCode: 75, stdout: "" });
  expect(busy.stderr).toMatch(/process \d+ .* has an exclusive exact lock on a \(by hand\)/);
  expect((await run(["files", "status", folder])).stdout).toContain("by hand");
});

test("the tree of a store is its folder files, and no command makes a tree by looking", async () => {
  const folder = makeScratch();
  await using store = await openStore(join(folder, "store"));
  const files = await store.files();
  await files.write("a", "1");
  expect(await run(["files", "cat", join(folder, "store"), "a"])).toMatchObject({ exitCode: 0, stdout: "1" });
  expect(readFileSync(join(folder, "store/files/a"), "utf8")).toBe("1");
  const missing = join(folder, "missing");
  for (const args of [
    ["cat", missing, "a"],
    ["status", missing],
    ["rm", missing, "a"],
    ["mv", missing, "a", "b"],
    ["write", missing, "a", "--no-create"],
  ])
    expect(await run(["files", ...args])).toMatchObject({ exitCode: 66, stdout: "" });
  expect(existsSync(missing)).toBe(false);
  expect(await run(["files", "write", folder, "../out"], "x")).toMatchObject({ exitCode: 2 });
  expect(await run(["files", "rm"])).toMatchObject({ exitCode: 2 });
});

test("files are found by their text, and the index is built anew", async () => {
  const folder = makeScratch();
  await run(["files", "write", folder, "notes/wolf.md"], "The wolf\nlives in the north.");
  await run(["files", "write", folder, "notes/bear.md"], "A bear.");
  expect(await run(["files", "search", folder, "WOLF north"])).toEqual({
    exitCode: 0,
    stdout: "notes/wolf.md: The wolf lives in the north.\n",
    stderr: "",
  });
  const { stdout } = await run(["files", "search", folder, "a", "--limit", "1", "--under", "notes", "--json"]);
  expect(jsonOf(stdout)).toMatchObject({ path: "notes/bear.md" });
  expect(await run(["files", "search", folder, "lynx"])).toMatchObject({ exitCode: 3, stdout: "" });
  expect(await run(["files", "search", folder, "a", "--limit", "0"])).toMatchObject({ exitCode: 2 });
  expect(await run(["files", "search", join(folder, "none"), "a"])).toMatchObject({ exitCode: 66 });
  expect(await run(["files", "reindex", folder, "--json"])).toMatchObject({ exitCode: 0 });
  expect(jsonOf((await run(["files", "reindex", folder, "--json"])).stdout)).toMatchObject({ indexed: 2 });
});

test("takes a verb that there is not for wrong usage, also with --help", async () => {
  for (const noun of ["files", "locks", "handoff"]) {
    expect(await run([noun, "nosuch", "--help"])).toMatchObject({ exitCode: 2, stdout: "" });
    expect(await run([noun, "--help"])).toMatchObject({ exitCode: 0 });
  }
});

test("reindexes a tree whose programs have functions of their own only when it is told to forget those", async () => {
  const folder = makeScratch();
  const files = await openFiles(folder, { embed: async () => [1, 2] });
  await files.write("a.md", "wolf");
  await files.settled();
  await files.close();
  const refused = await run(["files", "reindex", folder]);
  expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
  expect(refused.stderr).toContain("--forget-functions");
  expect(await run(["files", "reindex", folder, "--forget-functions"])).toMatchObject({ exitCode: 0 });
  expect(await run(["files", "reindex", folder])).toMatchObject({ exitCode: 0 });
});

test("a tree is listed a line for each entry, and one that no command can use is left out with a warning", async () => {
  const folder = makeScratch();
  await run(["files", "write", folder, "notes/plan.md"], "one");
  writeFileSync(join(folder, "back\\slash"), "");
  const text = await run(["files", "ls", folder, "-r"]);
  expect(text.stdout).toMatch(/^\S+Z +0 {2}notes\/\n\S+Z +3 {2}notes\/plan\.md\n$/);
  expect(text.stderr).toContain("backslash");
  const json = await run(["files", "ls", folder, "notes", "--json"]);
  expect(json.stdout.trimEnd().split("\n").map(jsonOf)).toMatchObject([{ path: "notes/plan.md", size: 3 }]);
  expect(await run(["files", "ls", folder, "missing"])).toMatchObject({ stdout: "" });
  expect(await run(["files", "ls", folder, "missing"])).not.toMatchObject({ exitCode: 0 });
});

test("verify and stats of a tree, and of a store, cover its files, their change log and their sessions", async () => {
  const folder = makeScratch();
  const store = await openStore(join(folder, "store"));
  const files = await store.files();
  await files.write("a.md", "wolf");
  await (await files.session("monday")).append({ role: "user", content: "Where do wolves live?" });
  await files.settled();
  await store.close();
  const at = join(folder, "store");
  expect(await run(["files", "verify", at])).toMatchObject({ exitCode: 0, stdout: "ok: 1 file(s) checked.\n" });
  const stats = jsonOf((await run(["stats", at, "--json"])).stdout);
  expect(stats).toMatchObject({ part: "files", stats: { files: 1, changes: 1, givenUp: 0, sessions: 1 } });
  expect((await run(["files", "status", at])).stdout).toContain("All changes are indexed.");
  for (const record of ["changes/0000000000/0000000001", "sessions/monday/messages/0000000001"])
    writeFileSync(join(at, "ground/files", record), "torn");
  for (const command of [
    ["verify", at],
    ["files", "verify", at],
  ]) {
    const { exitCode, stdout } = await run(command);
    expect(exitCode).toBe(5);
    for (const what of ["changes/0000000000/0000000001", "monday/messages/0000000001"]) expect(stdout).toContain(what);
  }
  expect(await run(["files", "verify", at, "--repair"])).toMatchObject({ exitCode: 0 });
  expect(await run(["verify", at])).toMatchObject({ exitCode: 0 });
});

test("a directory that is a log, a box or an object store is no tree, and gets no file", async () => {
  const folder = makeScratch();
  await run(["events", "append", join(folder, "log"), "--type", "A"]);
  await run(["handoff", "put", join(folder, "box"), "--name", "a"], "x");
  await run(["objects", "mb", join(folder, "objects")]);
  for (const name of ["log", "box", "objects"]) {
    const { exitCode, stderr } = await run(["files", "write", join(folder, name), "a.md"], "x");
    expect({ name, exitCode }).toEqual({ name, exitCode: 2 });
    expect(stderr).toContain("--adopt` turns it into a store");
    expect(existsSync(join(folder, name, "a.md"))).toBe(false);
  }
});

test("a worker indexes what others write, until it is told to end", async () => {
  const folder = makeScratch();
  const backlog = async (): Promise<unknown> =>
    jsonOf((await run(["files", "status", folder, "--json"])).stdout)["backlog"];
  await run(["files", "write", folder, "wolf.md"], "The wolf.");
  expect(await backlog()).toBe(1);
  const once = await run(["files", "work", folder, "--once", "--json"]);
  expect(once).toMatchObject({ exitCode: 0, stderr: "" });
  expect(jsonOf(once.stdout)).toMatchObject({ backlog: 0, givenUp: 0 });
  expect(await backlog()).toBe(0);

  const stop = new AbortController();
  const ignored = { write: () => undefined };
  const working = runCommandLine(["files", "work", folder], { stdout: ignored, stderr: ignored }, stop.signal);
  await run(["files", "write", folder, "bear.md"], "The bear.");
  await until(async () => (await backlog()) === 0);
  stop.abort();
  expect(await working).toBe(0);
  expect(await run(["files", "work", folder, "--jobs", "0"])).toMatchObject({ exitCode: 2 });
});
