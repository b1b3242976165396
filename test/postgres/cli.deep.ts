// The command line on locations in a database: a server that does not answer, and the output of every verb.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { holdfast } from "../cli/holdfast-process.ts";
import { serverUrl } from "./stores.ts";

test("a command that cannot reach the server ends with 1, and its message has no password", async () => {
  const ended = await holdfast(["events", "head", "postgres://me:s3cret@127.0.0.1:1/shop"]);
  expect(ended).toMatchObject({ exitCode: 1, stdout: "" });
  expect(ended.stderr).toContain("ECONNREFUSED");
  expect(ended.stderr).not.toContain("s3cret");
});

/** Every verb that takes a location, as a user may type it. */
const verbs: readonly string[] = [
  "init SHOP",
  "events append SHOP --type A",
  "events read SHOP",
  "events head SHOP",
  "events consumers SHOP",
  "events export SHOP",
  "events import SHOP --log other",
  "events verify SHOP",
  "events rebuild SHOP",
  "handoff put SHOP --name a",
  "handoff ls SHOP",
  "handoff show SHOP none",
  "handoff cat SHOP none",
  "handoff take SHOP --for 1h",
  "handoff ack SHOP none",
  "handoff retry SHOP none",
  "handoff fail SHOP none --reason x",
  "handoff work SHOP --exec true --once",
  "handoff stats SHOP",
  "handoff stats SHOP --prom",
  "handoff replay SHOP --all",
  "handoff pause SHOP --reason x",
  "handoff resume SHOP",
  "handoff verify SHOP",
  "handoff adopt SHOP . --renamed",
  "handoff export SHOP . --once",
  "objects mb SHOP --bucket photos",
  "objects put SHOP a - --bucket photos",
  "objects get SHOP a --bucket photos",
  "objects cp SHOP a b --bucket photos",
  "objects ls SHOP",
  "objects ls SHOP --bucket photos",
  "objects versions SHOP --bucket photos",
  "objects rm SHOP a --bucket photos",
  "objects import SHOP /dev/null --bucket photos",
  "objects rb SHOP --bucket photos",
  "locks list SHOP",
  "locks break SHOP x",
  "run --store SHOP --lock x -- true",
  "semaphore status SHOP",
  "files ls SHOP",
  "verify SHOP",
  "stats SHOP",
  "stats SHOP --prom",
  "collect SHOP",
  "upgrade SHOP",
  "doctor SHOP",
  "console SHOP",
  "watch SHOP",
  "publish SHOP",
  "copy SHOP SHOP",
  "copy SHOP /dev/null/shop",
  "s3 SHOP --no-create --bucket none --port 99999",
];

const shop = new URL("postgres://none");

async function run(...args: string[]): Promise<{ exitCode: number; output: string }> {
  let output = "";
  const write = (text: string | Uint8Array): unknown => (output += Buffer.from(text).toString());
  const pipes = { stdin: body("x"), stdout: { write }, stderr: { write } };
  return { exitCode: await runCommandLine(args, pipes, new AbortController().signal), output };
}

async function* body(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

beforeAll(async () => {
  shop.href = serverUrl();
  shop.password = "s3cret";
  shop.searchParams.set("store", randomUUID());
  const { href } = shop;
  expect((await run("events", "append", href, "--log", "main", "--type", "A")).exitCode).toBe(0);
  expect((await run("handoff", "put", href, "--name", "a")).exitCode).toBe(0);
  expect((await run("objects", "mb", href, "--bucket", "photos")).exitCode).toBe(0);
});

test.each(verbs)("%s prints no password, whether it succeeds or fails", async (words) => {
  const bad = new URL(shop);
  bad.pathname = "/none";
  const inQuery = new URL(bad);
  inQuery.password = "";
  inQuery.searchParams.set("password", "s3cret");
  for (const url of [shop, bad, inQuery])
    for (const json of [[], ["--json"]]) {
      const { exitCode, output } = await run(
        ...json,
        ...words.split(" ").map((word) => word.replace("SHOP", url.href)),
      );
      expect(output).not.toContain("s3cret");
      if (url !== shop) expect([1, 2, 5, 66, 75]).toContain(exitCode);
      // A file or folder of this name would have the password in it.
      expect(existsSync(url.protocol)).toBe(false);
    }
});
