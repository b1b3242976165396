// Text and stamps: what a caller reads as text is written back without the loss of a byte or of an update.
import { describe, expect, it } from "vitest";
import { openFiles } from "../../src/files/index.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesOn } from "./file-sites.ts";

describe.each(sites)("text in a tree on %s", (_name, make) => {
  it("updateText loses no update of many callers in two processes", async () => {
    const site = await filesOn(make);
    const both = [await site.open({ timeoutMs: 60_000 }), await site.open({ timeoutMs: 60_000 })];
    const seen: (string | undefined)[] = [];
    const add = (index: number) =>
      both[index % 2]!.updateText("notes/täglich.md", async (text) => {
        seen.push(text);
        return `${text ?? "\uFEFF"}ä`;
      });
    await Promise.all(Array.from({ length: 6 }, (_, index) => add(index)));
    // The byte order mark of another program stays.
    expect(await both[0]!.readText("notes/täglich.md")).toBe("\uFEFFääääää");
    expect(seen[0]).toBeUndefined();
    await both[0]!.updateText("notes/täglich.md", () => undefined);
    expect(await both[1]!.readText("notes/täglich.md")).toBe("\uFEFFääääää");
  });

  it("a text and its stamp, read in one call, are of one content while others write", async () => {
    const site = await filesOn(make);
    const [reader, writer] = [await site.open(), await site.open()];
    const stamps = new Map<string, string | undefined>();
    for (const text of ["one", "two", "three"]) stamps.set(text, (await writer.write("a", text)).stamp);
    let isOver = false;
    const writing = (async () => {
      for (let round = 0; round < 4; round++) for (const text of stamps.keys()) await writer.write("a", text);
      isOver = true;
    })();
    while (!isOver) {
      const { text, stamp } = await reader.readTextStamped("a");
      expect(stamp).toBe(stamps.get(text));
    }
    await writing;
    const { text, stamp } = await reader.readTextStamped("a");
    const { bytes, stamp: same } = await reader.readStamped("a");
    expect([Buffer.from(bytes).toString(), same]).toEqual([text, stamp]);
    await reader.write("a", `${text} more`, { ifStamp: stamp });
    expect(await codeOf(reader.write("a", "lost", { ifStamp: stamp }))).toBe("PRECONDITION_FAILED");
    expect(await reader.readText("a")).toBe("three more");
  });

  it("a file that is not UTF-8 is refused as text, and keeps its bytes", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    const bytes = Uint8Array.of(0x61, 0xff, 0x62);
    await files.write("latin1.txt", bytes);
    await expect(files.updateText("latin1.txt", (text) => `${text}!`)).rejects.toThrow(/latin1\.txt is not UTF-8/);
    await expect(files.readTextStamped("latin1.txt")).rejects.toThrow(TypeError);
    expect(Buffer.from((await files.readStamped("latin1.txt")).bytes)).toEqual(Buffer.from(bytes));
    for (const call of [files.readStamped("none"), files.readTextStamped("none"), files.readTextStamped("")])
      expect(await codeOf(call)).toBe("NO_SUCH_FILE");
    await expect(files.updateText("a", "text" as never)).rejects.toThrow(/updateText: change/);
  });
});

it("a store opens its tree with work: false, and the work begins with work()", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  const idle = await store.files({ work: false });
  await idle.write("a.md", "The wolf lives in the north.");
  expect(await idle.search("wolf")).toEqual([]);
  expect((await idle.stat("a.md"))?.indexed).toBe(false);
  const working = idle.work();
  await idle.settled();
  expect((await idle.search("wolf")).map(({ path }) => path)).toEqual(["a.md"]);
  await working.stop();
  await expect(store.files({ work: 1 } as object)).rejects.toThrow(/work must be true or false/);
});

it("`memory:` is a new tree each time, with a search", async () => {
  await using one = await openFiles("memory:");
  await using other = await openFiles("memory:");
  await one.updateText("a.md", (text) => `${text ?? ""}wolf`);
  await one.settled();
  expect((await one.search("wolf")).map(({ path }) => path)).toEqual(["a.md"]);
  expect(await other.stat("a.md")).toBeUndefined();
});
