// Adding a directory that was prepared elsewhere: whole or not at all, its source consumed, its lock kept for the worker.
import { describe, expect, it } from "vitest";
import { holdfastError } from "../../src/errors.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesOn, QueueInHand, textsOf } from "./file-sites.ts";

describe.each(sites)("adding to a tree on %s", (_name, make) => {
  it("takes a staged directory in, also where directories are missing, and consumes it", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    const staged = await site.stage("staged", { "a.md": "a", "sub/b.md": "b", "empty/c/d.md": "d" });
    expect(await files.add("docs/guide", staged)).toEqual({ path: "docs/guide", task: "" });
    expect(await textsOf(files)).toEqual({
      "docs/guide/a.md": "a",
      "docs/guide/empty/c/d.md": "d",
      "docs/guide/sub/b.md": "b",
    });
    expect(await site.onDisk(site.directory)).not.toHaveProperty("staged/a.md");
    expect(Object.keys(await site.onDisk(staged))).toEqual([]);
    // The lock is released: there is no index that would need it.
    await files.remove("docs/guide", { timeoutMs: 0 });
  });

  it("replaces what is there: a file that the new state does not have is gone", async () => {
    const site = await filesOn(make);
    const files = await site.open();
    await files.add("guide", await site.stage("one", { a: "1", old: "1" }));
    await files.add("guide", await site.stage("two", { a: "2", new: "2" }));
    expect(await textsOf(files)).toEqual({ "guide/a": "2", "guide/new": "2" });
    expect(await codeOf(files.add("guide", await site.stage("three", { a: "3" }), { naming: "fail" }))).toBe(
      "FILE_EXISTS",
    );
    // A refused add takes nothing.
    expect(await site.onDisk(`${site.directory}/three`)).toEqual({ a: "3" });
    await files.write("plain", "a file");
    await files.add("plain", `${site.directory}/three`);
    expect(await files.readText("plain/a")).toBe("3");
  });

  it("takes the next free name without waiting, and returns it", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    const add = async (text: string) =>
      await ada.add("new/guide", await site.stage(text, { a: text }), { naming: "suffix" });
    expect(await add("1")).toMatchObject({ path: "new/guide" });
    expect(await add("2")).toMatchObject({ path: "new/guide_1" });
    await using _hold = await (await bob.locks()).acquire("new/guide_2", { mode: "tree" });
    expect(await add("3")).toMatchObject({ path: "new/guide_3" });
    expect(await textsOf(bob)).toEqual({ "new/guide/a": "1", "new/guide_1/a": "2", "new/guide_3/a": "3" });
    // A lock above is in the way of every name.
    await using _above = await (await bob.locks()).acquire("other", { mode: "tree" });
    await ada.write("more/x", "x");
    const above = await (await bob.locks()).acquire("more", { mode: "tree" });
    const staged = await site.stage("4", { a: "4" });
    expect(await codeOf(ada.add("more/guide", staged, { naming: "suffix", timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
    await above.release();
  });

  it("keeps the tree lock for the worker, and gives it the token with the ticket", async () => {
    const site = await filesOn(make);
    const queue = new QueueInHand();
    const [ada, bob] = [await site.open({ queue }), await site.open()];
    expect(await ada.add("guide", await site.stage("staged", { a: "1" }))).toEqual({ path: "guide", task: "ticket-1" });
    expect(await bob.readText("guide/a")).toBe("1");
    await expect(bob.remove("guide", { timeoutMs: 0 })).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      worthWaiting: true,
      blockedBy: [{ path: "guide", mode: "tree", tag: "files: add" }],
    });
    const [{ change, token } = { change: undefined, token: undefined }] = queue.queued;
    expect(change).toMatchObject({ number: 1, kind: "written", path: "guide" });
    const hold = await (await bob.locks()).receive(token!);
    expect(await codeOf(ada.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
    await hold.release();
    await ada.remove("guide", { timeoutMs: 0 });
  });

  it("indexes before it returns when it works within a hold, which cannot be transferred", async () => {
    const site = await filesOn(make);
    const queue = new QueueInHand();
    const files = await site.open({ queue });
    const hold = await (await files.locks()).acquire("project", { mode: "tree" });
    expect(await files.add("project/guide", await site.stage("staged", { a: "1" }), { within: hold })).toEqual({
      path: "project/guide",
      task: "ticket-1",
    });
    expect(queue.indexedWithin).toMatchObject([{ change: { path: "project/guide" } }]);
    expect(queue.queued).toEqual([]);
    await hold.release();
  });

  it("leaves files and staged directory as they are when the index does not let go", async () => {
    const site = await filesOn(make);
    const queue = new QueueInHand();
    const files = await site.open({ queue });
    await files.write("guide/a", "1");
    await files.write("b", "b");
    queue.failure = holdfastError("IO_ERROR", "the index is broken", { path: "index" });
    const staged = await site.stage("staged", { a: "2" });
    for (const call of [() => files.add("guide", staged), () => files.remove("b"), () => files.move("b", "c")])
      expect(await codeOf(call())).toBe("INDEX_FAILED");
    expect(await textsOf(files)).toEqual({ b: "b", "guide/a": "1" });
    expect(await site.onDisk(staged)).toEqual({ a: "2" });
    // What takes nothing away is done, and the log worker makes the ticket.
    await files.write("b", "c");
    expect(await files.add("fresh", staged)).toEqual({ path: "fresh", task: "" });
    // No worker has the token, so the lock is free at once.
    await files.write("fresh/a", "3", { timeoutMs: 0 });
    expect(queue.queued.map(({ change }) => change.number)).toEqual([1, 2]);
  });

  it("removes nothing that came to the staged directory meanwhile", async () => {
    const site = await filesOn(make);
    const queue = new QueueInHand();
    const files = await site.open({ queue });
    const staged = await site.stage("staged", { "a/1": "1" });
    queue.enqueue = async () => {
      await site.stage("staged", { "a/2": "late" });
      return "ticket";
    };
    await files.add("guide", staged);
    expect(await textsOf(files)).toEqual({ "guide/a/1": "1" });
    expect(await site.onDisk(staged)).toEqual({ "a/2": "late" });
  });
});
