// Opening a tree: alone, in a store, under locks of the caller's, and where nothing can be written.
import { chmodSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openFiles } from "../../src/files/index.ts";
import { openStore } from "../../src/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { codeOf, textsOf } from "./file-sites.ts";

it("what belongs to a tree lies in .holdfast, and no listing shows it", async () => {
  const root = join(makeScratch(), "team");
  await using files = await openFiles(root);
  await files.write("a", "1");
  expect(readdirSync(root).sort()).toEqual([".holdfast", "a"]);
  expect(await textsOf(files)).toEqual({ a: "1" });
});

it("the tree of a store is the folder files, however it is opened", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  const files = await store.files();
  await files.write("a/b", "1");
  expect(await store.files()).toBe(files);
  expect(readdirSync(join(directory, "files"))).toEqual(["a"]);
  for (const location of [directory, join(directory, "files")]) {
    await using alone = await openFiles(location);
    expect(alone.root).toBe(join(directory, "files"));
    const hold = await (await store.locks()).acquire("a", { mode: "tree" });
    expect(await codeOf(alone.write("a/b", "2", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
    await files.write("a/b", "2", { within: hold });
    await hold.release();
    expect(await alone.readText("a/b")).toBe("2");
  }
  expect(await codeOf(openFiles(join(directory, "files/a")))).toBe("INVALID_PATH");
  await expect(store.files({ leaseMs: 1000 } as object)).rejects.toThrow(TypeError);
});

it("a store in memory has a tree, too", async () => {
  await using store = await openStore("memory:");
  const files = await store.files();
  await files.write("a/b", "1");
  await files.move("a", "c");
  expect(await textsOf(files)).toEqual({ "c/b": "1" });
});

it("works under locks that the caller has opened, and leaves them open", async () => {
  const root = makeScratch();
  await using locks = await openPathLocks(root);
  const files = await openFiles(root, { locks });
  const hold = await locks.acquire("a");
  expect(await codeOf(files.write("a", "1", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
  await files.write("a", "1", { within: hold });
  await files.close();
  await hold.release();
  expect(await codeOf(files.read("a"))).toBe("CLOSED");
  await (await locks.acquire("a")).release();
  expect(await codeOf(openFiles(makeScratch(), { locks }))).toBe("WRONG_STORE");
  await expect(openFiles(root, { locks: {} as typeof locks })).rejects.toThrow(TypeError);
  await expect(openFiles(root, { lease: 1 } as object)).rejects.toThrow(TypeError);
});

it("makes nothing with create: false where no tree is", async () => {
  const root = join(makeScratch(), "share");
  expect(await codeOf(openFiles(root, { create: false }))).toBe("NOT_A_STORE");
  mkdirSync(root);
  expect(await codeOf(openFiles(root, { create: false }))).toBe("NOT_A_STORE");
  expect(existsSync(join(root, ".holdfast"))).toBe(false);
  await (await openFiles(root)).close();
  await (await openFiles(root, { create: false })).close();
});

it("is read where nothing can be written, and a write says why it cannot", async () => {
  const root = makeScratch();
  const writer = await openFiles(root);
  await writer.write("a/b", "1");
  await writer.close();
  const directories = ["a", ".holdfast", ".holdfast/holders", ".holdfast/temp", ".holdfast/files", "."];
  for (const name of directories) chmodSync(join(root, name), 0o555);
  onTestFinished(() => {
    for (const name of directories) chmodSync(join(root, name), 0o755);
  });
  await asOrdinaryUser(async () => {
    const files = await openFiles(root);
    expect(await textsOf(files)).toEqual({ "a/b": "1" });
    expect(await files.stat("a/b")).toMatchObject({ size: 1 });
    for await (const { kind, path } of files.changes({ after: 0 })) {
      expect({ kind, path }).toEqual({ kind: "written", path: "a/b" });
      break;
    }
    expect(await codeOf(files.write("a/b", "2"))).toBe("NO_PERMISSION");
    await files.close();
  });
});

it("says CLOSED after its end, also in an iteration that goes on", async () => {
  const files = await openFiles(makeScratch());
  for (const path of ["a", "b"]) await files.write(path, "1");
  const listing = files.list()[Symbol.asyncIterator]();
  await listing.next();
  await files.close();
  expect(await codeOf(Promise.resolve(listing.next()))).toBe("CLOSED");
  expect(await codeOf(files.verify())).toBe("CLOSED");
});

it("shows nothing of a tree that was opened inside of it", async () => {
  const root = makeScratch();
  await using outer = await openFiles(root);
  await outer.write("inner/a.md", "wolf");
  await (await openFiles(join(root, "inner"))).close();
  expect(await textsOf(outer)).toEqual({ "inner/a.md": "wolf" });
  expect(await codeOf(outer.read("inner/.holdfast/store.json"))).toBe("INVALID_PATH");
});
