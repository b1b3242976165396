// The command line on locations in a database: the verbs take them where they take a folder, refuse
// them where only a folder will do, and never show a password.
import { randomUUID } from "node:crypto";
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { HoldfastProcess } from "../cli/holdfast-process.ts";
import { serverUrl } from "./stores.ts";

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

/** A new store in the server of this run. The server trusts every password. */
function newLocation(): string {
  const url = new URL(serverUrl());
  url.password = "s3cret";
  url.searchParams.set("store", randomUUID());
  return url.href;
}

const parsed = (lines: string): unknown[] =>
  lines
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);

test("the verbs of events work on a log in a database, by the store or by the location of the log", async () => {
  const shop = newLocation();
  const shown = shop.replace("s3cret", "***");
  expect(await run(["events", "append", shop, "--no-create", "--type", "Sold"])).toMatchObject({ exitCode: 66 });
  expect(await run(["init", shop, "--json"])).toMatchObject({ exitCode: 0, stderr: "" });
  const appended = await run(["events", "append", shop, "--log", "orders", "--type", "Sold", "--tag", "sku:1"]);
  expect(appended).toMatchObject({ exitCode: 0, stderr: `holdfast: making a new log in ${shown}#events/orders\n` });
  const log = `${shop}#events/orders`;
  expect(await run(["events", "append", log, "--type", "Sold", "--if-none-match", "all"])).toMatchObject({
    exitCode: 1,
  });
  expect((await run(["events", "append", log], '{"type":"Paid","data":1}\n{"type":"Sent","data":2}\n')).exitCode).toBe(
    0,
  );
  expect(parsed((await run(["events", "read", shop, "--log", "orders"])).stdout)).toMatchObject([
    { type: "Sold", tags: ["sku:1"], position: 1 },
    { type: "Paid" },
    { type: "Sent" },
  ]);
  expect(parsed((await run(["events", "head", log, "--json"])).stdout)).toEqual([
    { directory: `${shown}#events/orders`, position: 3 },
  ]);
  expect(parsed((await run(["events", "consumers", log, "--json"])).stdout)).toEqual([]);
  expect(await run(["events", "verify", log])).toMatchObject({ exitCode: 0, stdout: "ok: 3 event(s) checked.\n" });
  const exported = await run(["events", "export", log]);
  expect(await run(["events", "import", shop, "--log", "copy"], exported.stdout)).toMatchObject({ exitCode: 0 });
  expect(parsed((await run(["stats", shop, "--json"])).stdout)).toMatchObject([
    { part: "log", directory: `${shown}#events/copy`, stats: { events: 3 } },
    { part: "log", directory: `${shown}#events/orders`, stats: { events: 3 } },
  ]);
  expect(parsed((await run(["verify", shop, "--json"])).stdout)).toMatchObject([
    { part: "store", directory: shown, ok: true },
    { part: "log", ok: true },
    { part: "log", ok: true },
  ]);
  expect(await run(["collect", shop])).toMatchObject({ exitCode: 0 });
  const missing = await run(["events", "read", shop, "--log", "none"]);
  expect(missing).toMatchObject({ exitCode: 66, stdout: "" });
  expect(missing.stderr).toContain("the store has copy, orders");
});

test("the verbs of handoff work on a box in a database", async () => {
  const shop = newLocation();
  const shown = shop.replace("s3cret", "***");
  const put = await run(["handoff", "put", shop, "--box", "b", "--name", "a.txt", "--key", "one"], "hello");
  expect(put).toMatchObject({ exitCode: 0 });
  const id = put.stdout.trim();
  const box = `${shop}#handoff/b`;
  expect(parsed((await run(["handoff", "ls", box, "--json"])).stdout)).toMatchObject([{ id, key: "one" }]);
  expect((await run(["handoff", "cat", box, id, "a.txt"])).stdout).toBe("hello");
  expect(await run(["handoff", "pause", shop, "--box", "b", "--reason", "stock-taking"])).toMatchObject({
    exitCode: 0,
  });
  expect(await run(["handoff", "take", box, "--for", "1h"])).toMatchObject({ exitCode: 75 });
  expect(await run(["handoff", "resume", box])).toMatchObject({ exitCode: 0 });
  const taken = parsed((await run(["handoff", "take", box, "--for", "1h", "--json"])).stdout)[0] as { claim: string };
  expect(await run(["handoff", "fail", box, taken.claim, "--reason", "no"])).toMatchObject({ exitCode: 0 });
  expect(await run(["handoff", "replay", box, id])).toMatchObject({ exitCode: 0 });
  const again = parsed((await run(["handoff", "take", box, "--for", "1h", "--json"])).stdout)[0] as { claim: string };
  expect(await run(["handoff", "retry", box, again.claim])).toMatchObject({ exitCode: 0 });
  const worked = await run(["handoff", "work", box, "--exec", "cat", "--once"]);
  expect(worked).toMatchObject({ exitCode: 0 });
  expect(parsed((await run(["handoff", "show", box, id, "--json"])).stdout)).toMatchObject([{ id, state: "archive" }]);
  expect(parsed((await run(["handoff", "stats", box, "--json"])).stdout)).toMatchObject([{ archive: 1, incoming: 0 }]);
  expect((await run(["handoff", "stats", box, "--prom"])).stdout).toContain(
    `{box="${shown}#handoff/b",state="archive"} 1`,
  );
  expect(await run(["handoff", "verify", box])).toMatchObject({ exitCode: 0 });
  expect(parsed((await run(["stats", shop, "--json"])).stdout)).toMatchObject([
    { part: "box", directory: `${shown}#handoff/b`, stats: { archive: 1 } },
  ]);
  expect(parsed((await run(["collect", shop, "--archive", "1ms", "--json"])).stdout)).toMatchObject([
    { part: "box", collected: { tickets: 1, bytes: 5 } },
  ]);
  for (const { stdout, stderr } of [put, worked]) expect(stdout + stderr).not.toContain("s3cret");
});

test("the verbs of objects work on a bucket in a database", async () => {
  const shop = newLocation();
  const shown = shop.replace("s3cret", "***");
  const made = await run(["objects", "mb", shop, "--bucket", "photos", "--versioning"]);
  expect(made).toMatchObject({ exitCode: 0, stderr: `holdfast: making a new object store in ${shown}#objects\n` });
  const of = ["--bucket", "photos"];
  const put = await run(["objects", "put", shop, "cats/tom", "-", ...of], "meow");
  expect(put).toMatchObject({ exitCode: 0 });
  expect((await run(["objects", "get", shop, "cats/tom", "-", ...of])).stdout).toBe("meow");
  expect(await run(["objects", "cp", shop, "cats/tom", "cats/tim", ...of])).toMatchObject({ exitCode: 0 });
  expect(parsed((await run(["objects", "ls", shop, "cats/", ...of, "--json"])).stdout)).toHaveLength(2);
  expect(await run(["objects", "rm", shop, "cats/tim", ...of])).toMatchObject({ exitCode: 0 });
  expect(parsed((await run(["objects", "versions", shop, "cats/tim", ...of, "--json"])).stdout)).toHaveLength(2);
  expect(parsed((await run(["stats", shop, "--json"])).stdout)).toMatchObject([
    { part: "objects", directory: `${shown}#objects`, stats: { buckets: 1, objects: 1, bytes: 4 } },
  ]);
  expect(parsed((await run(["verify", shop, "--json"])).stdout)).toMatchObject([
    { part: "store", ok: true },
    { part: "objects", ok: true },
  ]);
  expect(await run(["collect", shop])).toMatchObject({ exitCode: 0 });
  expect(await run(["objects", "get", shop, "none", "-", ...of])).toMatchObject({ exitCode: 3 });
  expect(await run(["objects", "ls", shop, "--bucket", "none"])).toMatchObject({ exitCode: 66 });
});

test("upgrade reports the schema of a database, and has nothing to do", async () => {
  const { stdout, exitCode } = await run(["upgrade", newLocation(), "--dry-run", "--json"]);
  expect(exitCode).toBe(0);
  expect(parsed(stdout)).toMatchObject([{ part: "schema", upgraded: false }]);
});

test("run holds a lock in a database, locks list shows it without the password, and locks break evicts it", async () => {
  const shop = newLocation();
  const locked = new HoldfastProcess(["run", "--store", shop, "--lock", "stock/a", "--", "sh", "-c", "echo $HOLDFAST_FENCE; exec sleep 60"]); // prettier-ignore
  expect(Number(await locked.hear())).toBeGreaterThan(0);
  if (process.platform === "linux") {
    const title = execFileSync("cat", [`/proc/${locked.pid}/cmdline`]).toString();
    expect(title).toContain("***@");
    expect(title).not.toContain("s3cret");
  }
  const busy = await run(["run", "--store", shop, "--lock", "stock", "--tree", "-n", "--", "true"]);
  expect(busy).toMatchObject({ exitCode: 75 });
  const listed = await run(["locks", "list", shop, "--json"]);
  expect(parsed(listed.stdout)).toMatchObject([{ kind: "path", path: "stock/a", tag: "sh" }]);
  const evicted = await run(["locks", "break", shop, "stock/a"]);
  expect(evicted).toMatchObject({ exitCode: 0 });
  for (const text of [busy.stderr, listed.stdout, evicted.stdout]) expect(text).not.toContain("s3cret");
  expect(await run(["locks", "break", shop, "stock/a"])).toMatchObject({ exitCode: 3 });
  await using locks = await openPathLocks(shop);
  expect(await locks.list()).toEqual([]);
});

describe("where there is no store", () => {
  test.each([
    "events read SHOP",
    "events export SHOP",
    "locks list SHOP",
    "locks break SHOP x",
    "verify SHOP",
    "stats SHOP",
    "collect SHOP",
    "run --no-create --store SHOP --lock x -- true",
  ])("%s ends with 66 and makes none", async (words) => {
    // prettier-ignore
    const shop = newLocation();
    const { exitCode, stdout, stderr } = await run(words.split(" ").map((word) => word.replace("SHOP", shop)));
    expect({ exitCode, stdout }).toEqual({ exitCode: 66, stdout: "" });
    expect(stderr).not.toContain("s3cret");
    expect(await run(["verify", shop])).toMatchObject({ exitCode: 66 });
  });
});

describe("what only a folder has refuses a location in a database with UNSUPPORTED:", () => {
  test.each([
    "files ls SHOP",
    "files write SHOP a",
    "files verify SHOP",
    "semaphore status SHOP",
    "semaphore try-acquire SHOP --pid 1",
    "doctor SHOP",
    "console SHOP",
    "watch SHOP",
    "publish SHOP",
    "init SHOP --adopt",
    "handoff adopt SHOP . --renamed",
    "handoff export SHOP . --once",
    "events append SHOP --mode local --type A",
    "events rebuild SHOP#events/main",
  ])("%s", async (words) => {
    // prettier-ignore
    const shop = newLocation();
    if (words.startsWith("events")) await run(["events", "append", shop, "--type", "A"]);
    const { exitCode, stdout, stderr } = await run(["--json", ...words.split(" ").map((word) => word.replace("SHOP", shop))]); // prettier-ignore
    expect({ exitCode, stdout, error: JSON.parse(stderr) as unknown }).toMatchObject({
      exitCode: 2,
      stdout: "",
      error: { error: { code: "UNSUPPORTED", exitCode: 2 } },
    });
    expect(stderr).not.toContain("s3cret");
  });
});

describe("no message has the password", () => {
  const { port, pathname } = new URL(serverUrl());
  test.each([
    ["a missing database", `postgres://holdfast:s3cret@127.0.0.1:${port}/none`, 66],
    ["an unknown user", `postgres://me:s3cret@127.0.0.1:${port}${pathname}`, 1],
    ["a location that is no URL", `postgres://me:s3cret/x@127.0.0.1:${port}${pathname}`, 2],
    ["a password in the query", `postgres://127.0.0.1:${port}/none?user=holdfast&password=s3cret`, 66],
    ["a part of another kind", `${newLocation()}#handoff/main`, 2],
  ])("of %s", async (_, location, exitCode) => {
    for (const words of [
      ["events", "head"],
      ["--json", "events", "head"],
      ["locks", "list"],
      ["run", "--lock", "x", "--store"],
    ]) {
      // prettier-ignore
      const rest = words[0] === "run" ? ["--", "true"] : [];
      const ended = await run([...words, location, ...rest]);
      expect(ended.stdout + ended.stderr).not.toContain("s3cret");
      if (words.includes("events")) expect(ended).toMatchObject({ exitCode, stdout: "" });
    }
  });
});
