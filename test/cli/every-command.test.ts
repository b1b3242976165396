// Rules that hold for every command: a missing place ends with one code, lists are NDJSON, and paths are printed as they
// were given. A new command does not pass before it stands in the tables here.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], stdin = ""): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  const pipes = {
    stdin: (async function* () {
      yield Buffer.from(stdin);
    })(),
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  return { exitCode: await runCommandLine(args, pipes, new AbortController().signal), ...written };
}

/** `events append`, `doctor`, … as the help pages name them. */
async function listCommands(words: readonly string[] = []): Promise<string[]> {
  const { stdout } = await run([...words, "--help"]);
  const [, list = ""] = stdout.split("Commands:\n");
  const names = [...(list.split("\n\n")[0] ?? "").matchAll(/^ {2}([a-z0-9-]+)/gm)].map((match) => match[1] ?? "");
  const verbs = names.filter((name) => name !== "help");
  if (verbs.length === 0) return [words.join(" ")];
  const found: string[] = [];
  for (const verb of verbs) found.push(...(await listCommands([...words, verb])));
  return found;
}

/** The words behind the command. DIR is where the place is missing; --no-create where the command would make it. */
const onMissingPlace: Readonly<Record<string, (directory: string) => readonly string[]>> = {
  doctor: (directory) => [join(directory, "none")],
  run: (directory) => ["--no-create", "--store", directory, "--lock", "x", "--", "true"],
  "semaphore try-acquire": (directory) => [join(directory, "none", "x.lock"), "--pid", String(process.pid)],
  "semaphore acquire": (directory) => [join(directory, "none", "x.lock"), "--pid", String(process.pid)],
  "semaphore release": (directory) => [join(directory, "none", "x.lock"), "--pid", String(process.pid)],
  "semaphore status": (directory) => [join(directory, "none", "x.lock")],
  "semaphore clean": (directory) => [join(directory, "none", "x.lock")],
  "locks list": (directory) => [directory],
  "locks break": (directory) => [directory, "x"],
  "events append": (directory) => [directory, "--no-create", "--type", "Sold"],
  "events read": (directory) => [directory],
  "events tail": (directory) => [directory],
  "events head": (directory) => [directory],
  "events consumers": (directory) => [directory],
  "events verify": (directory) => [directory],
  "events export": (directory) => [directory],
  "events import": (directory) => [directory, "--no-create"],
  "events rebuild": (directory) => [directory],
  "handoff put": (directory) => [directory, "--no-create", "--name", "a"],
  "handoff take": (directory) => [directory],
  "handoff ack": (directory) => [directory, "x"],
  "handoff retry": (directory) => [directory, "x"],
  "handoff fail": (directory) => [directory, "x", "--reason", "y"],
  "handoff work": (directory) => [directory, "--once", "--exec", "true"],
  "handoff adopt": (directory) => [directory, directory, "--no-create", "--renamed"],
  "handoff export": (directory) => [directory, directory, "--once"],
  "handoff ls": (directory) => [directory],
  "handoff show": (directory) => [directory, "x"],
  "handoff cat": (directory) => [directory, "x"],
  "handoff stats": (directory) => [directory],
  "handoff watch": (directory) => [directory],
  "handoff replay": (directory) => [directory, "--all"],
  "handoff pause": (directory) => [directory],
  "handoff resume": (directory) => [directory],
  "handoff verify": (directory) => [directory],
  "objects mb": (directory) => [directory, "--no-create", "--bucket", "b-1"],
  "objects rb": (directory) => [directory, "--bucket", "b-1"],
  "objects ls": (directory) => [directory],
  "objects put": (directory) => [directory, "key", "-"],
  "objects get": (directory) => [directory, "key"],
  "objects rm": (directory) => [directory, "key"],
  "objects versions": (directory) => [directory],
  "objects cp": (directory) => [directory, "key", "key"],
  "objects import": (directory) => [directory, directory],
  console: (directory) => [directory, "--port", "0"],
  watch: (directory) => [directory],
  mcp: (directory) => [directory, "--no-create"],
  s3: (directory) => [directory, "--no-create", "--port", "0"],
  "files add": (directory) => [directory, "a", directory, "--no-create"],
  "files write": (directory) => [directory, "a", "--no-create"],
  "files cat": (directory) => [directory, "a"],
  "files rm": (directory) => [directory, "a"],
  "files mv": (directory) => [directory, "a", "b"],
  "files ls": (directory) => [directory],
  "files search": (directory) => [directory, "a"],
  "files reindex": (directory) => [directory],
  "files status": (directory) => [directory],
  "files verify": (directory) => [directory],
  "files work": (directory) => [directory, "--once"],
  publish: (directory) => [join(directory, "none", "file")],
  verify: (directory) => [directory],
  stats: (directory) => [directory],
  collect: (directory) => [directory],
  upgrade: (directory) => [directory],
  copy: (directory) => [directory, join(directory, "none", "copy")],
  backup: (directory) => [directory, join(directory, "none", "backups")],
  restore: (directory) => [directory, join(directory, "none", "shop")],
  backups: (directory) => [directory],
};
/** They make what they work on, or need none. */
const withoutPlace = ["demo", "init", "completion"];

test("every command stands in the table of this file", async () => {
  expect((await listCommands()).sort()).toEqual([...withoutPlace, ...Object.keys(onMissingPlace)].sort());
});

describe("where its place is missing, a command makes nothing, says so on stderr and ends with 66:", () => {
  test.each(Object.entries(onMissingPlace))("%s", async (name, wordsFor) => {
    for (const isEmptyDirectory of [false, true]) {
      const directory = join(makeScratch(), "shop");
      if (isEmptyDirectory) mkdirSync(directory);
      const { exitCode, stdout, stderr } = await run(["--json", ...name.split(" "), ...wordsFor(directory)]);
      expect({ exitCode, stdout }).toEqual({ exitCode: 66, stdout: "" });
      expect(JSON.parse(stderr)).toMatchObject({ error: { exitCode: 66, action: "fix-caller" } });
      expect(readdirSync(join(directory, "..")).flatMap((each) => readdirSync(join(directory, "..", each)))).toEqual(
        [],
      );
    }
  });
});

function namesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
}

test("a missing log, box or bucket of a store ends with 66, and the store stays as it is", async () => {
  const directory = makeScratch();
  await (await openStore(directory)).close();
  const before = namesBelow(directory);
  for (const words of [
    ["events", "read", directory, "--log", "sales"],
    ["events", "append", directory, "--log", "sales", "--no-create", "--type", "A"],
    ["handoff", "ls", directory, "--box", "invoices"],
    ["handoff", "put", directory, "--box", "invoices", "--no-create", "--name", "a"],
    ["objects", "ls", directory, "--bucket", "photos"],
    ["files", "ls", directory],
  ])
    expect(await run(words)).toMatchObject({ exitCode: 66, stdout: "" });
  expect(namesBelow(directory)).toEqual(before);
  await run(["objects", "mb", directory, "--bucket", "photos"]);
  expect(await run(["objects", "ls", directory, "--bucket", "films"])).toMatchObject({ exitCode: 66, stdout: "" });
});

describe("in a store with something of everything", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  beforeAll(async () => {
    const file = join(directory, "a.txt");
    writeFileSync(file, "brown bear");
    const shop = join(directory, "shop");
    for (const words of [
      ["init", shop],
      ["events", "append", shop, "--log", "sales", "--type", "Sold"],
      ["events", "append", shop, "--log", "orders", "--type", "Sold"],
      ["handoff", "put", shop, "--box", "invoices", file, "--key", "one"],
      ["handoff", "put", shop, "--box", "invoices", file, "--key", "two"],
      ["objects", "mb", shop, "--bucket", "photos"],
      ["objects", "mb", shop, "--bucket", "films"],
      ["objects", "put", shop, "tom", file, "--bucket", "photos"],
      ["objects", "put", shop, "kit", file, "--bucket", "photos"],
    ])
      expect({ words, ...(await run(words)) }).toMatchObject({ words, exitCode: 0 });
    for (const name of ["a.md", "b.md"])
      expect(await run(["files", "write", shop, name], "brown bear")).toMatchObject({ exitCode: 0 });
  });

  /** How many lines each list has there. */
  const lists: readonly (readonly [words: string, lines: number])[] = [
    ["events read SHOP --log sales", 1],
    ["events consumers SHOP --log sales", 0],
    ["handoff ls SHOP --box invoices", 2],
    ["objects ls SHOP", 2],
    ["objects ls SHOP --bucket photos", 2],
    ["objects versions SHOP --bucket photos", 2],
    ["files ls SHOP", 2],
    ["files search SHOP bear", 2],
    ["verify SHOP", 6],
    ["stats SHOP", 5],
    ["collect SHOP", 2],
    ["locks list SHOP", 1],
  ];

  test.each(lists)("with --json %s prints a line of JSON for each entry", async (words, lines) => {
    const shop = join(directory, "shop");
    writeFileSync(join(shop, "backup.lock"), `pid=${process.pid}\ntimestamp=${Math.floor(Date.now() / 1000)}\n`);
    const { exitCode, stdout } = await run([...words.replace("SHOP", shop).split(" "), "--json"]);
    expect(exitCode).toBe(0);
    const printed = stdout.split("\n").slice(0, -1);
    expect(printed.map((line) => JSON.parse(line) as unknown)).toHaveLength(lines);
    for (const line of printed) expect(line).toMatch(/^\{/);
  });

  test("a path that is given relative is printed relative, by results, notes and errors", async () => {
    const shop = relative(process.cwd(), join(directory, "shop"));
    const absolute = join(directory, "shop");
    for (const words of [
      "verify SHOP",
      "stats SHOP",
      "collect SHOP",
      "events head SHOP --log sales --json",
      "events verify SHOP --log sales --json",
      "events read SHOP --log none",
      "events append SHOP/none/none/none --log x --type A",
      "handoff stats SHOP --box invoices --json",
      "handoff take SHOP --box invoices --json",
      "handoff take SHOP --box none",
      "objects ls SHOP/none",
      "objects mb SHOP/none/none --bucket b-1",
      "files status SHOP",
      "files status SHOP --json",
      "files ls SHOP/none",
      "files cat SHOP none",
      "locks list SHOP --json",
      "locks list SHOP/events",
      "semaphore status SHOP/x.lock --json",
      "semaphore status SHOP/none/x.lock",
      "run --store SHOP/none/none/none --lock x -- true",
      "doctor SHOP/none",
    ]) {
      const { stdout, stderr } = await run(words.replace("SHOP", shop).split(" "));
      expect(`${words}: ${(stdout + stderr).replaceAll(shop, "SHOP")}`).not.toContain(absolute);
    }
    expect((await run(["events", "head", `${shop}/events/sales`, "--json"])).stdout).toContain(
      `"${shop}/events/sales"`,
    );
  });
});
