// `holdfast verify` and `holdfast stats`: all parts of a store in one call.
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

async function run(...args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  const exitCode = await runCommandLine(args, streams, new AbortController().signal);
  return { exitCode, ...written };
}

async function newStore(): Promise<string> {
  const directory = makeScratch();
  await using store = await openStore(directory);
  for (const log of ["main", "orders"]) await (await store.events(log)).append({ type: "Sold", data: log });
  return directory;
}

test("verify reports every log of a store, and of a log's own directory that one", async () => {
  const directory = await newStore();
  const logs = ["main", "orders"].map((name) => join(directory, "events", name));
  const { exitCode, stdout } = await run("verify", directory, "--json");
  expect(exitCode).toBe(0);
  const store = { part: "store", directory, ok: true };
  const parts = logs.map((path) => ({ part: "log", directory: path, ok: true }));
  const printed = stdout.trimEnd().split("\n");
  expect(printed.map((line) => JSON.parse(line) as unknown)).toMatchObject([store, ...parts]);
  expect((await run("verify", directory)).stdout).toBe(
    [`${directory}\nok: 2 record(s) checked.\n`, ...logs.map((path) => `${path}\nok: 1 event(s) checked.\n`)].join(""),
  );
  expect((await run("verify", logs[1] ?? "")).stdout).toBe(`${logs[1]}\nok: 1 event(s) checked.\n`);
});

test("verify ends with 5 when one of the parts is damaged, and checks the others all the same", async () => {
  const directory = await newStore();
  writeFileSync(join(directory, "events", "main", "log.json"), "garbage");
  const { exitCode, stdout } = await run("verify", directory);
  expect(exitCode).toBe(5);
  expect(stdout).toMatch(/damaged: .*\n.*\/orders\nok: 1 event\(s\) checked\.\n$/);
  expect(await run("verify", directory, "--repair")).toMatchObject({ exitCode: 0 });
  expect(await run("verify", directory)).toMatchObject({ exitCode: 0 });
  await using store = await openStore(directory);
  expect(await (await store.events()).head()).toBe(1);
  expect(await store.holders()).toHaveLength(1);
});

test("verify finds a damaged or lost record of the store, and its repair makes it anew with the same id", async () => {
  const directory = await newStore();
  const { id } = await openStore(directory).then(async (store) => (await store.close(), store));
  const record = join(directory, "holdfast.json");
  for (const damage of [() => writeFileSync(record, "garbage"), () => rmSync(record)]) {
    damage();
    const { exitCode, stdout } = await run("verify", directory);
    expect(exitCode).toBe(5);
    expect(stdout).toContain("The record of this store");
    expect(await run("verify", directory, "--repair")).toMatchObject({ exitCode: 0 });
    await using store = await openStore(directory, { create: false });
    expect(store.id).toBe(id);
  }
});

test("verify finds a record of the lock table that cannot be read, and a repair moves it aside", async () => {
  const directory = await newStore();
  {
    await using store = await openStore(directory);
    await (await (await store.locks()).acquire("x")).release();
  }
  const names = join(directory, "ground", "names.json");
  writeFileSync(names, "garbage");
  for (const [args, exitCode] of [
    [[], 5],
    [["--repair"], 0],
    [[], 0],
  ] as const)
    expect(await run("verify", directory, ...args)).toMatchObject({ exitCode });
  const [aside = ""] = readdirSync(join(directory, "aside"));
  expect(readFileSync(join(directory, "aside", aside), "utf8")).toBe("garbage");
});

test("stats counts the events of every log", async () => {
  const directory = await newStore();
  expect((await run("stats", directory)).stdout).toBe(
    ["main", "orders"].map((name) => `${join(directory, "events", name)}: log, events 1\n`).join(""),
  );
});

test("where there is no part they end with 66, and make nothing", async () => {
  const directory = makeScratch();
  appendFileSync(join(directory, "note.txt"), "mine");
  for (const verb of ["verify", "stats"])
    expect(await run(verb, directory)).toMatchObject({
      exitCode: 66,
      stdout: "",
      stderr: expect.stringContaining("no part") as string,
    });
  expect(readdirSync(directory)).toEqual(["note.txt"]);
});

test("a store without parts is not missing: verify, stats and collect end with 0", async () => {
  const directory = makeScratch();
  await (await openStore(directory)).close();
  for (const verb of ["verify", "stats", "collect"])
    expect({ verb, ...(await run(verb, directory)) }).toMatchObject({ verb, exitCode: 0, stderr: "" });
  expect((await run("stats", directory)).stdout).toBe(`${directory} is a store without parts.\n`);
  expect((await run("stats", directory, "--json")).stdout).toBe("");
});

test("a command that names a part of a store makes the store in a new folder, and openStore opens it", async () => {
  const scratch = makeScratch();
  const [forLog, forBucket] = ["log", "bucket"].map((name) => join(scratch, name)) as [string, string];
  const append = ["events", "append", forLog, "--log", "sales", "--type", "Sold"];
  expect(await run(...append)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining(`made a new store in ${forLog}\n`) as string,
  });
  expect(await run("objects", "mb", forBucket, "--bucket", "photos")).toMatchObject({ exitCode: 0 });
  await using logs = await openStore(forLog, { create: false });
  expect(await (await logs.events("sales")).head()).toBe(1);
  await using buckets = await openStore(forBucket, { create: false });
  expect(await (await buckets.objects()).listBuckets()).toMatchObject([{ name: "photos" }]);
  expect(await run("events", "append", join(scratch, "a/b"), "--log", "x", "--type", "A")).toMatchObject({
    exitCode: 66,
  });
});
