// The operations on a tree, on every kind of disk: what a process writes, moves or removes is what all others find.
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path/posix";
import { describe, expect, it, onTestFinished } from "vitest";
import { removeTree } from "../../src/durable/publish/directory.ts";
import { FolderFiles } from "../../src/files/files.ts";
import { openFiles } from "../../src/files/index.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { withDisk } from "../sites/path-locks.ts";
import { makeRealSite, sites } from "../sites/sites.ts";
import { World } from "../sites/world.ts";
import { until } from "../waiting.ts";
import { codeOf, filesOn, textsOf } from "./file-sites.ts";

describe.each(sites)("a tree on %s", (_name, make) => {
  it("gives every process what another one wrote, with its stamp", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    const info = await ada.write("notes/2026/plan.md", "first");
    expect(info).toMatchObject({ path: "notes/2026/plan.md", directory: false, size: 5, indexed: false });
    expect(info.stamp).toMatch(/^[0-9a-f]{32}$/);
    expect(await bob.readText("notes/2026/plan.md")).toBe("first");
    expect(await bob.stat("notes/2026/plan.md")).toMatchObject({ stamp: info.stamp });
    expect(await bob.stat("notes")).toMatchObject({ path: "notes", directory: true });
    await bob.write("notes/2026/plan.md", Buffer.from("second"));
    expect(await ada.readText("notes/2026/plan.md")).toBe("second");
    expect((await ada.stat("notes/2026/plan.md"))?.stamp).not.toBe(info.stamp);
    expect(await site.onDisk(site.root)).toEqual({ "notes/2026/plan.md": "second" });
  });

  it("takes a body piece by piece", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }
    expect(await files.write("deep/down/body", pieces())).toMatchObject({ size: 7 });
    expect(await files.readText("deep/down/body")).toBe("one two");
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("half");
      throw new Error("the source broke");
    }
    await expect(files.write("deep/down/body", broken())).rejects.toThrow("the source broke");
    expect(await textsOf(files)).toEqual({ "deep/down/body": "one two" });
  });

  it("loses no update of many callers in two processes", async () => {
    const site = await filesOn(make);
    const both = [await site.open({ timeoutMs: 60_000 }), await site.open({ timeoutMs: 60_000 })];
    const increase = (current: Uint8Array | undefined): string =>
      String(Number(Buffer.from(current ?? "0").toString()) + 1);
    await Promise.all(Array.from({ length: 8 }, (_, index) => both[index % 2]!.update("counters/a", increase)));
    expect(await both[0]!.readText("counters/a")).toBe("8");
    await both[0]!.update("counters/a", () => undefined);
    expect(await both[1]!.readText("counters/a")).toBe("8");
  });

  it("writes only if the file is as the caller has read it", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    const { stamp } = await files.write("a", "one", { ifStamp: null });
    await expect(files.write("a", "other", { ifStamp: null })).rejects.toMatchObject({
      code: "PRECONDITION_FAILED",
      key: "a",
      current: stamp,
    });
    const second = await files.write("a", "two", { ifStamp: stamp });
    expect(await codeOf(files.write("a", "three", { ifStamp: stamp }))).toBe("PRECONDITION_FAILED");
    expect(await codeOf(files.write("b", "three", { ifStamp: second.stamp }))).toBe("PRECONDITION_FAILED");
    expect(await textsOf(files)).toEqual({ a: "two" });
  });

  it("removes a file, or a directory with all that is in it", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    for (const path of ["a/x", "a/b/y", "c"]) await ada.write(path, path);
    await bob.remove("a");
    expect(await textsOf(ada)).toEqual({ c: "c" });
    expect(await ada.stat("a")).toBeUndefined();
    await ada.remove("c");
    expect(await site.onDisk(site.root)).toEqual({});
    for (const path of ["a", "c", "a/x"]) expect(await codeOf(bob.remove(path))).toBe("NO_SUCH_FILE");
    for (const call of [() => bob.read("c"), () => bob.readText("a/x"), () => bob.move("c", "d")])
      expect(await codeOf(call())).toBe("NO_SUCH_FILE");
  });

  it("moves a file or a directory, also to where directories are missing", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    await files.write("a/x", "x");
    await files.write("a/b/y", "y");
    await files.write("c", "c");
    await files.move("a", "deep/down/a");
    await files.move("c", "new/c");
    expect(await textsOf(files)).toEqual({ "deep/down/a/b/y": "y", "deep/down/a/x": "x", "new/c": "c" });
    await files.move("new/c", "deep/down/a/x");
    expect(await files.readText("deep/down/a/x")).toBe("c");
    await files.move("deep/down/a/x", "deep/down/a/x");
    expect(await codeOf(files.move("deep/down/a/x", "new"))).toBe("FILE_EXISTS");
    expect(await codeOf(files.move("deep", "new"))).toBe("FILE_EXISTS");
    expect(await codeOf(files.move("deep", "deep/down/a/z"))).toBe("INVALID_PATH");
    expect(await site.onDisk(site.root)).toEqual({ "deep/down/a/b/y": "y", "deep/down/a/x": "c", "new/": "" });
  });

  it("lists what is directly below, or all of it, in order", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    for (const path of ["b/2", "b/1", "a", "b/c/3"]) await files.write(path, path);
    const paths = async (under?: string, deep?: boolean): Promise<string[]> => {
      const found: string[] = [];
      for await (const { path } of files.list(under, { deep })) found.push(path);
      return found;
    };
    expect(await paths()).toEqual(["a", "b"]);
    expect(await paths("b")).toEqual(["b/1", "b/2", "b/c"]);
    expect(await paths("", true)).toEqual(["a", "b", "b/1", "b/2", "b/c", "b/c/3"]);
    expect(await codeOf(paths("nowhere"))).toBe("NO_SUCH_FILE");
    expect(await codeOf(paths("a"))).toBe("NO_SUCH_FILE");
  });

  it("says who is in the way, with which lock and since when, and whether waiting helps", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    await ada.write("a/x", "x");
    const hold = await (await ada.locks()).acquire("a", { mode: "tree", tag: "by hand" });
    await expect(ada.write("a/x", "y", { timeoutMs: 0 })).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      worthWaiting: false,
      message: expect.stringContaining("within"),
    });
    for (const call of [() => bob.remove("a", { timeoutMs: 0 }), () => bob.move("a/x", "b", { timeoutMs: 0 })])
      await expect(call()).rejects.toMatchObject({
        code: "RESOURCE_BUSY",
        blockedBy: [{ path: "a", mode: "tree", shared: false, tag: "by hand", since: expect.any(Date) }],
        message: expect.stringMatching(/process \d+ on .* has an exclusive tree lock on a \(by hand\) since/),
      });
    await ada.write("a/x", "y", { within: hold });
    await hold.release();
    expect(await bob.readText("a/x")).toBe("y");
  });

  it("names the operation of the same process that is in the way, also when no other process can see it yet", async () => {
    const site = await filesOn(make);
    const ada = await site.open();
    const first = ada.write("a", "1");
    await expect(Promise.all([1, 2].map((each) => ada.write("a", `${each}`, { timeoutMs: 0 })))).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      worthWaiting: true,
      blockedBy: [{ path: "a", tag: "files: write" }],
      message: expect.stringContaining("this process itself"),
    });
    await first;
    expect(await ada.readText("a")).toMatch(/[12]/);
  });

  it("works within a hold of the caller's, which other processes wait for", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open({ timeoutMs: 60_000 })];
    await ada.write("project/a", "1");
    const hold = await (await ada.locks()).acquire("project", { mode: "tree" });
    const late = bob.write("project/a", "late");
    await ada.move("project/a", "project/b", { within: hold });
    await ada.update("project/b", () => "2", { within: hold });
    await ada.remove("project/b", { within: hold });
    await ada.write("project/c", "3", { within: hold });
    expect(await textsOf(bob)).toEqual({ "project/c": "3" });
    await hold.release();
    await late;
    expect(await textsOf(ada)).toEqual({ "project/a": "late", "project/c": "3" });
    await expect(ada.write("project/a", "4", { within: hold })).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

it("a small write costs six syncs: one to stage, two to announce, two to commit, one to apply", async () => {
  const world = new World();
  const opening = openTree(world.ports("ada"), "/share/tree");
  await world.advance(100);
  const files = new FolderFiles(await opening);
  await files.write("a", "1");
  const before = world.calls.length;
  await files.write("a", "2");
  const syncs = world.calls.slice(before).filter(({ what }) => what.startsWith("sync"));
  expect(syncs.map(({ what }) => what.replaceAll(/[0-9a-z]{10,}/g, "…"))).toHaveLength(6);
  const looks = world.calls.slice(before).filter(({ what }) => /^(stat|look) /.test(what));
  // The target before and under the lock, its directory, what was staged, and the target again before the commit.
  expect(looks).toHaveLength(5);
  await files.close();
});

it("a write that waited goes to where its path leads under the lock, not to where it led before", async () => {
  const root = makeScratch();
  const [one, other] = [await openFiles(root, { index: false }), await openFiles(root, { index: false })];
  await one.write("d/x", "old");
  await one.write("e/x", "old");
  const hold = await (await other.locks()).acquire("d/x");
  const writing = one.write("d/x", "new");
  await until(async () => (await (await other.locks()).list()).some(({ waiting }) => waiting.length > 0));
  renameSync(join(root, "d"), join(root, "f"));
  symlinkSync("e", join(root, "d"));
  await hold.release();
  expect(await writing).toMatchObject({ path: "e/x" });
  expect(await textsOf(one)).toMatchObject({ "e/x": "new", "f/x": "old" });
  for (const files of [one, other]) await files.close();
});

it("refuses before the commit what this user may never rename: a directory of another one, and what is in it", async () => {
  const root = makeScratch();
  const writer = await openFiles(root, { index: false });
  await writer.write("theirs/c.md", "1");
  await writer.write("mine", "1");
  await writer.close();
  const staged = makeScratch();
  writeFileSync(join(staged, "new"), "1");
  for (const path of [root, staged]) chownTree(path, 65534);
  // Without root this user is the owner, and may write where the mode allows it.
  chmodSync(join(root, "theirs"), 0o555);
  onTestFinished(() => chmodSync(join(root, "theirs"), 0o755));
  await asOrdinaryUser(async () => {
    const files = await openFiles(root, { index: false, timeoutMs: 1000 });
    for (const call of [
      () => files.move("theirs", "moved"),
      () => files.remove("theirs"),
      () => files.add("theirs", staged),
      () => files.remove("theirs/c.md"),
      () => files.move("mine", "theirs/mine"),
      () => files.write("theirs/c.md", "2"),
    ])
      expect(await codeOf(call())).toBe("NO_PERMISSION");
    expect(await textsOf(files)).toEqual({ "theirs/c.md": "1", mine: "1" });
    expect(readdirSync(staged)).toEqual(["new"]);
    await files.move("mine", "still mine");
    // The work on the last change has a lock for a moment.
    const locks = await files.locks();
    await until(async () => (await locks.list()).length === 0);
    await files.close();
  });
});

function chownTree(path: string, user: number): void {
  if (process.geteuid?.() !== 0) return;
  lchownSync(path, user, user);
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) chownTree(join(path, name), user);
}

it("leaves out links that lead in a circle, and moves and removes what they are in", async () => {
  const root = makeScratch();
  await using files = await openFiles(root);
  await files.write("d/a.md", "wolf");
  symlinkSync("loop", join(root, "d/loop"));
  expect(await textsOf(files)).toEqual({ "d/a.md": "wolf" });
  await files.settled();
  expect(await files.verify({ repair: true })).toMatchObject({
    ok: true,
    checked: 1,
    problems: [{ path: "d/loop", severity: "note" }],
  });
  expect(await files.rebuildIndex()).toBe(1);
  await files.move("d", "e");
  await files.settled();
  expect((await files.search("wolf")).map(({ path }) => path)).toEqual(["e/a.md"]);
  await files.remove("e");
  expect(readdirSync(root)).toEqual([".holdfast"]);
});

it("one file or directory that this user may not read keeps no other from being listed, verified and found", async () => {
  const root = makeScratch();
  const writer = await openFiles(root);
  for (const path of ["a.md", "b.md", "locked/c.md"]) await writer.write(path, "wolf");
  await writer.settled();
  await writer.close();
  chownTree(root, 65534);
  const unreadable = ["b.md", "locked"];
  for (const name of unreadable) chmodSync(join(root, name), 0);
  onTestFinished(() => {
    for (const name of unreadable) chmodSync(join(root, name), 0o755);
  });
  await asOrdinaryUser(async () => {
    const files = await openFiles(root, { work: false });
    const listed: string[] = [];
    for await (const { path } of files.list("", { deep: true })) listed.push(path);
    expect(listed).toEqual(["a.md", "b.md", "locked"]);
    expect((await files.search("wolf")).map(({ path }) => path)).toEqual(["a.md"]);
    expect((await files.verify({ repair: true })).problems).toMatchObject([
      { path: "b.md", repaired: false },
      { path: "locked", repaired: false },
    ]);
    await files.close();
  });
  // For a user that may read them they are still hits.
  for (const name of unreadable) chmodSync(join(root, name), 0o755);
  await using again = await openFiles(root);
  expect((await again.search("wolf")).map(({ path }) => path).sort()).toEqual(["a.md", "b.md", "locked/c.md"]);
});

it("a process that slept past its lease and was swept in the middle of a write is told LOCK_LOST", async () => {
  for (const swept of ["redo", "temp"]) {
    const site = await filesOn(makeRealSite);
    const bob = await site.open();
    let sweep = async (): Promise<void> => undefined;
    const dozing = withDisk((disk) => ({
      link: async (from, to) => {
        if (to.includes("/files/changes/")) await sweep();
        await disk.link(from, to);
      },
    }));
    const ada = new FolderFiles(await openTree(dozing(await site.openPorts()), site.root));
    onTestFinished(() => ada.close().catch(() => undefined));
    const { disk } = await site.openPorts();
    const own = (await disk.list(`${site.root}/.holdfast/temp`)).sort();
    sweep = async () => {
      await (await bob.locks()).break("a");
      // What the sweep of a dead process does.
      const names = swept === "redo" ? await disk.list(`${site.root}/.holdfast/redo`) : own;
      for (const name of names) await removeTree(disk, `${site.root}/.holdfast/${swept}/${name}`);
    };
    expect([swept, await codeOf(ada.write("a", "1"))]).toEqual([swept, "LOCK_LOST"]);
    expect(existsSync(join(site.root, "a"))).toBe(false);
  }
});
