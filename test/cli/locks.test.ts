// `holdfast locks`: who holds what is told to people and to programs, a holder is evicted, and a
// look makes nothing.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { openPathLocks, openStoreLock, Semaphore, type HeldLock, type PathLocks } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";
import { keep } from "../locks/keep.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(...args: string[]): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  return { exitCode: await runCommandLine(["locks", ...args], streams, new AbortController().signal), ...written };
}

async function newLocks(): Promise<{ readonly root: string; readonly locks: PathLocks }> {
  const root = makeScratch();
  const locks = await openPathLocks(root);
  onTestFinished(() => locks.close());
  return { root, locks };
}

function linesOf(stdout: string): (HeldLock & { readonly kind: string })[] {
  const lines = stdout.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as HeldLock & { kind: string });
}

const timePattern = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;

describe("locks list", () => {
  test("tells people who holds what, since when and what for, and who waits", async () => {
    const { root, locks } = await newLocks();
    await using other = await openPathLocks(root);
    await keep(locks.acquire("stock/report.csv", { tag: "nightly" }));
    await keep(locks.acquire("archive", { mode: "tree", shared: true }));
    const waiting = other.acquire("stock", { mode: "tree", timeoutMs: 60_000 }).catch(() => undefined);
    await vi.waitFor(async () => expect((await locks.list()).some(({ waiting }) => waiting.length > 0)).toBe(true));
    const { exitCode, stdout, stderr } = await run("list", root);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const who = String.raw`${process.pid} on \S+`;
    for (const line of [
      /^path +lock +fence +holder +since +for$/m,
      new RegExp(`^stock/report\\.csv +exact +\\d+ +${who} +${timePattern} +nightly$`, "m"),
      new RegExp(`^archive +tree shared +\\d+ +${who} +${timePattern}$`, "m"),
      new RegExp(`^  waits: ${who}, for stock \\(tree\\), since ${timePattern}$`, "m"),
    ])
      expect(stdout).toMatch(line);
    await other.close();
    await waiting;
  });

  test("tells programs the same in one line of JSON", async () => {
    const { root, locks } = await newLocks();
    const hold = await locks.acquire("stock", { tag: "nightly" });
    const { exitCode, stdout } = await run("list", root, "--json");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      kind: "path",
      path: "stock",
      mode: "exact",
      shared: false,
      holdId: hold.id,
      fence: hold.fence,
      tag: "nightly",
      since: expect.stringMatching(timePattern) as string,
      holder: expect.objectContaining({ pid: process.pid, state: "alive", leaseMs: 300_000 }) as object,
      waiting: [],
    });
  });

  test("shows semaphore files in the folder and in the tree of a store, and leases of Holdfast only with --all", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    await using deploy = await new Semaphore(join(directory, "deploy.lock")).acquire({ tag: "nightly" });
    writeFileSync(join(directory, "yarn.lock"), "# not a lock of ours\n");
    const log = await store.events();
    await using _consumer = log.consume("mail", "all", async () => undefined);
    await vi.waitFor(async () => expect((await log.consumers())[0]?.holder).toBeDefined());
    await keep((await store.locks()).acquire("stock"));
    mkdirSync(join(directory, "files"), { recursive: true });
    await using inTree = await new Semaphore(join(directory, "files", "report.lock")).acquire();
    const { stdout, exitCode } = await run("list", directory);
    expect(exitCode).toBe(0);
    const lines = stdout.split("\n");
    expect(lines[1]).toMatch(/^stock /);
    expect(lines[2]).toMatch(
      new RegExp(
        `^The semaphore file ${join(directory, "deploy.lock")} names process ${process.pid} on \\S+, since .* \\(nightly\\): its holder, process ${process.pid}, is alive\\.$`,
      ),
    );
    expect(lines[3]).toContain("files/report.lock names process");
    expect(lines).toHaveLength(5);
    const shown = linesOf((await run("list", directory, "--all", "--json")).stdout);
    expect(shown.map(({ kind, path }) => `${kind} ${path}`).sort()).toEqual([
      "path /events/main/consumers/mail",
      "path stock",
      `semaphore ${join(directory, "deploy.lock")}`,
      `semaphore ${join(directory, "files", "report.lock")}`,
    ]);
    expect(linesOf((await run("list", directory, "report", "--json")).stdout)).toMatchObject([{ kind: "semaphore" }]);
    expect(deploy.signal.aborted || inTree.signal.aborted).toBe(false);
  });

  test("shows with PATH what is locked there and below", async () => {
    const { root, locks } = await newLocks();
    for (const path of ["a/b", "ab", "c"]) await keep(locks.acquire(path));
    const pathsUnder = async (path: string): Promise<string[]> =>
      linesOf((await run("list", root, path, "--json")).stdout).map((lock) => lock.path);
    expect(await pathsUnder("a")).toEqual(["a/b"]);
    expect(await pathsUnder(join(root, "c"))).toEqual(["c"]);
    expect(await run("list", root, "../x")).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("says so when nothing is locked, and does not call that a failure", async () => {
    const { root, locks } = await newLocks();
    await (await locks.acquire("a")).release();
    expect(await run("list", root)).toEqual({ exitCode: 0, stdout: "Nothing is locked.\n", stderr: "" });
    expect(await run("list", root, "--json")).toMatchObject({ exitCode: 0, stdout: "" }); // prettier-ignore
  });

  test.each(["with", "without"])("names the holder of the store lock, %s path locks beside it", async (paths) => {
    const root = makeScratch();
    await using lock = await openStoreLock(root);
    if (paths === "with") {
      await using locks = await openPathLocks(root);
      await (await locks.acquire("a")).release();
    }
    const hold = await lock.acquire();
    const { exitCode, stdout } = await run("list", root);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      new RegExp(`^The store lock is held by ${process.pid} on \\S+, since ${timePattern}\\.$`, "m"),
    );
    const holder = { pid: process.pid, state: "alive" };
    expect(linesOf((await run("list", root, "--json")).stdout)).toMatchObject([{ kind: "store", holder }]);
    await hold.release();
    expect((await run("list", root)).stdout).toBe("Nothing is locked.\n");
  });

  test("lets nothing through that would move the cursor", async () => {
    const { root, locks } = await newLocks();
    await keep(locks.acquire("a\u001b[2Jb", { tag: "one\ntwo\u202e" }));
    const { stdout } = await run("list", root);
    expect(stdout).toContain("a\\u{1b}[2Jb ");
    expect(stdout).toMatch(/one\\u\{a\}two\\u\{202e\}\n$/);
  });

  test("ends with 66 where nothing was ever locked, and makes nothing there", async () => {
    const { root } = await newLocks();
    mkdirSync(join(root, "below"));
    const empty = makeScratch();
    writeFileSync(join(empty, "holdfast.json"), "{}");
    await (await openStoreLock(join(empty, "writer"))).close();
    for (const directory of [join(root, "below"), join(empty, "missing")]) {
      const found = await run("list", directory);
      expect(found).toMatchObject({ exitCode: 66, stdout: "" });
      expect(found.stderr).toContain(`nothing was ever locked in ${directory}`);
    }
    for (const directory of [empty, join(empty, "writer")])
      expect(await run("list", directory)).toEqual({ exitCode: 0, stdout: "Nothing is locked.\n", stderr: "" });
    expect((await run("list", join(root, "below"))).stderr).toContain(`above it, ${root} has locks`);
    expect(readdirSync(empty).sort()).toEqual(["holdfast.json", "writer"]);
    expect(readdirSync(join(root, "below"))).toEqual([]);
  });

  test("ends with 5 when the table is damaged, and does not take it for empty", async () => {
    const { root, locks } = await newLocks();
    await keep(locks.acquire("a"));
    writeFileSync(join(root, ".holdfast", "ground.json"), "garbage");
    expect(await run("list", root)).toMatchObject({ exitCode: 5, stdout: "" });
  });
});

describe("locks break", () => {
  test("evicts the holders of the path, also by a tree above it, and tells which they were", async () => {
    const { root, locks } = await newLocks();
    const [tree, beside] = [await locks.acquire("stock", { mode: "tree", tag: "nightly" }), await locks.acquire("b")];
    const { exitCode, stdout, stderr } = await run("break", root, "stock/report.csv");
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(
      new RegExp(`^Evicted:\\npath .*\\nstock +tree +${tree.fence} +${process.pid} on .* nightly\\n$`),
    );
    await expect(tree.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await beside.assertHeld();
    const again = await run("break", root, "stock/report.csv", "--json");
    expect(again.exitCode).toBe(3);
    expect(again.stdout).toBe("");
  });

  test("tells programs whom it evicted in one line of JSON", async () => {
    const { root, locks } = await newLocks();
    const hold = await locks.acquire("stock");
    const { exitCode, stdout } = await run("break", root, join(root, "stock"), "--json");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ path: "stock", holdId: hold.id, fence: hold.fence });
  });

  test("ends with 3 when nothing held it, and makes nothing where nothing was ever locked", async () => {
    const { root } = await newLocks();
    expect(await run("break", root, "a")).toMatchObject({ exitCode: 3, stdout: "Nothing holds it.\n" });
    const empty = makeScratch();
    expect(await run("break", empty, "a")).toMatchObject({ exitCode: 66, stdout: "" });
    expect(readdirSync(empty)).toEqual([]);
    expect(await run("break", root)).toMatchObject({ exitCode: 2, stdout: "" });
    expect(await run("break", root, "../a")).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("works from another process than that of the holder", async () => {
    const { root, locks } = await newLocks();
    const hold = await locks.acquire("stock");
    const other = new HoldfastProcess(["locks", "break", root, "stock", "--json"]);
    const { exitCode, stdout } = await other.ended;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ holder: { pid: process.pid, state: "alive" } });
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

test("every verb of `locks` has help with an example, and the exit codes at the end", async () => {
  for (const verb of ["list", "break"]) {
    const { exitCode, stdout } = await run(verb, "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`\\nExamples?:\\n  holdfast locks ${verb} `));
    expect(stdout).toMatch(/\nExit codes:\n( +\d+ {2}\S.*\n)+$/);
    expect(stdout).toContain("--json");
  }
  expect((await run()).exitCode).toBe(2);
  expect((await run("lsit", ".")).exitCode).toBe(2);
});
