// A part that was made alone becomes a part of a store, with everything in it.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openEvents } from "../../src/events/index.ts";
import { openFiles } from "../../src/files/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { adoptStore, openStore, verifyStore } from "../../src/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { makeScratch } from "../sites/scratch.ts";

const newFolder = (): string => join(makeScratch(), "shop");

async function run(...args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  const exitCode = await runCommandLine(args, streams, new AbortController().signal);
  return { exitCode, ...written };
}

describe("holdfast init", () => {
  test("makes a store in a new folder, and does nothing where one is", async () => {
    const folder = newFolder();
    const first = JSON.parse((await run("init", folder, "--json")).stdout) as { id: string };
    const second = JSON.parse((await run("init", folder, "--json")).stdout) as { id: string };
    expect(second).toEqual(first);
    await using store = await openStore(folder, { create: false });
    expect(store.id).toBe(first.id);
  });

  test("names the way to adopt a part that the folder has, and takes it", async () => {
    const folder = newFolder();
    await (await openEvents(folder)).append({ type: "Sold", data: 1 });
    const refused = await run("init", folder);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--adopt") as string });
  });
});

test("a lone event log keeps its events, its id and its ground in the store that adopts it", async () => {
  const folder = newFolder();
  const alone = await openEvents(folder);
  await alone.append([1, 2].map((data) => ({ type: "Sold", data })));
  await alone.close();
  expect(await adoptStore(folder, { name: "sales" })).toEqual({
    room: "events",
    directory: join(folder, "events/sales"),
  });
  await using store = await openStore(folder, { create: false });
  expect(await (await store.events("sales")).head()).toBe(2);
  expect(await (await store.events("sales")).append({ type: "Sold", data: 3 })).toMatchObject({ first: 3 });
  expect(await verifyStore(folder)).toMatchObject({ ok: true });
});

test("a lone box keeps its tickets, and lone objects their versions", async () => {
  const [boxFolder, objectsFolder] = [newFolder(), newFolder()];
  const box = await openHandoff(boxFolder);
  await box.publish({ "a.txt": "a" }, { key: "a" });
  await box.close();
  const objects = await openObjects(objectsFolder);
  await (await objects.createBucket("photos")).put("tom", "miaow");
  await objects.close();
  await adoptStore(boxFolder);
  await adoptStore(objectsFolder);
  await using boxStore = await openStore(boxFolder, { create: false });
  expect(await (await boxStore.handoff("main")).findByKey("a")).toMatchObject({ state: "incoming" });
  await using objectStore = await openStore(objectsFolder, { create: false });
  const photos = await (await objectStore.objects()).bucket("photos");
  expect((await photos.head("tom")).size).toBe(5);
});

test("a lone tree keeps its files, its changes and its locks", async () => {
  const folder = newFolder();
  const tree = await openFiles(folder);
  await tree.write("notes/plan.md", "paint the shelf");
  await tree.settled();
  await tree.close();
  await adoptStore(folder);
  expect(readFileSync(join(folder, "files/notes/plan.md"), "utf8")).toBe("paint the shelf");
  await using store = await openStore(folder, { create: false });
  const files = await store.files();
  await files.write("notes/more.md", "and the other shelf");
  await files.settled();
  expect((await files.search("shelf")).map(({ path }) => path).sort()).toEqual(["notes/more.md", "notes/plan.md"]);
  await (await store.locks()).withLock("import", async () => undefined);
});

test("path locks that were made by an older `holdfast run --store` become those of the store", async () => {
  const folder = newFolder();
  await using locks = await openPathLocks(folder);
  await locks.withLock("import", async () => undefined);
  await locks.close();
  await adoptStore(folder);
  await using store = await openStore(folder, { create: false });
  await (await store.locks()).withLock("import", async () => undefined);
  expect(existsSync(join(folder, ".holdfast"))).toBe(false);
});

test("a part that another process has open is not moved", async () => {
  const folder = newFolder();
  await using box = await openHandoff(folder);
  await expect(adoptStore(folder)).rejects.toMatchObject({ code: "RESOURCE_BUSY", blockedBy: [{ path: folder }] });
  await box.publish({ "a.txt": "a" });
});

test("an interrupted adoption is completed by the next one, and no other store is made meanwhile", async () => {
  const folder = newFolder();
  await (await openEvents(folder)).close();
  renameSync(folder, `${folder}.adopting`);
  await expect(openStore(folder)).rejects.toMatchObject({ code: "INVALID_PATH" });
  await adoptStore(folder);
  await using store = await openStore(folder, { create: false });
  expect(await (await store.events("main")).head()).toBe(0);
});

test("where there is nothing to adopt, nothing changes", async () => {
  const folder = makeScratch();
  writeFileSync(join(folder, "note.txt"), "mine");
  await expect(adoptStore(folder)).rejects.toMatchObject({ code: "NOT_A_STORE" });
  expect(existsSync(join(folder, "note.txt"))).toBe(true);
});
