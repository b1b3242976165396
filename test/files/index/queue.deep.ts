// The work on changes: done once for all processes, after every crash, and given up when it fails too often.
import { describe, expect, it } from "vitest";
import type { DerivedIndex } from "../../../src/files/model/derived-index.ts";
import { ChangeLog } from "../../../src/files/change-log/change-log.ts";
import { FolderFiles } from "../../../src/files/files.ts";
import { IndexedFiles } from "../../../src/files/indexed-files.ts";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { TextIndex } from "../../../src/files/engine/text-index.ts";
import { FilesLayout } from "../../../src/files/tree/layout.ts";
import { openTree } from "../../../src/files/tree/open-tree.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import { withDisk } from "../../sites/path-locks.ts";
import { makeRealSite, sites } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { codeOf, QueueInHand } from "../file-sites.ts";
import { found, indexedOn, locksOf, type IndexedSite } from "./indexed-sites.ts";

/** The paths that locks are waited for on. */
async function waitingIn(files: IndexedFiles): Promise<string[]> {
  const held = await (await files.locks()).list();
  return held.flatMap(({ waiting }) => waiting.map(({ path }) => path));
}

/** A process that changes the tree and dies before it makes a ticket. */
async function dying(site: IndexedSite): Promise<{ readonly files: FolderFiles; readonly queue: QueueInHand }> {
  const queue = new QueueInHand();
  return { queue, files: new FolderFiles(await openTree(await site.openPorts(), site.root), { queue }) };
}

describe.each(sites)("the queue of a tree on %s", (_name, make) => {
  it("works on a change whose process died before it made the ticket", async () => {
    const site = await indexedOn(make);
    const { files } = await dying(site);
    await files.write("a.md", "a wolf");
    await files.write("b.md", "a wolf");
    await files.remove("b.md");
    await files.close();
    const ada = await site.open();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md"]);
  });

  it("publishes no ticket for writes, updates, moves and removals", async () => {
    const site = await indexedOn(make);
    const ada = await site.open({ graceMs: 60_000 });
    await ada.write("a.md", "a wolf");
    await ada.updateText("a.md", (text) => `${text}, again`);
    await ada.move("a.md", "b.md");
    await ada.write("c.md", "a wolf");
    await ada.remove("c.md");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["b.md"]);
    const box = new BoxHandoff(await openBox(await site.openPorts(), `${site.state}/queue`));
    const states = ["incoming", "delayed", "processing", "archive", "error"] as const;
    for (const state of states) for await (const { meta } of box.list(state)) expect([state, meta]).toBeUndefined();
    await box.close();
  });

  it("meets a change that was announced and never committed with nothing new", async () => {
    const site = await indexedOn(make);
    const ada = await site.open();
    await ada.write("a.md", "a wolf");
    const ports = await site.openPorts();
    const staging = { disk: ports.disk, random: ports.random, directory: async () => site.root };
    const log = new ChangeLog(staging, new FilesLayout(`${site.root}/.holdfast`));
    await log.append({ kind: "removed", path: "a.md" });
    await log.append({ kind: "moved", path: "b.md", from: "a.md" });
    await log.append({ kind: "written", path: "never.md" });
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md"]);
  });
});

describe("the lock that comes with a ticket", () => {
  it("is held by the worker until everything is indexed, and released then", async () => {
    const site = await indexedOn(makeRealSite);
    let release = (): void => undefined;
    const asked = new Promise<void>((resolve) => (release = resolve));
    let isExtracting = false;
    const extract = async (): Promise<string> => {
      isExtracting = true;
      await asked;
      return "wolf";
    };
    const ada = await site.open({ extract });
    const bob = await site.open({ work: false });
    await bob.add("guide", await site.stage("staged", { a: "1" }));
    await until(() => isExtracting);
    expect(await codeOf(bob.remove("guide", { timeoutMs: 0 }))).toBe("RESOURCE_BUSY");
    release();
    await ada.settled();
    await bob.remove("guide", { timeoutMs: 0 });
  });

  it("is taken anew when it has lapsed before a worker came", async () => {
    const site = await indexedOn(makeRealSite);
    const { files, queue } = await dying(site);
    await files.add("guide", await site.stage("staged", { a: "wolf" }));
    const [{ change, token } = { change: undefined, token: "" }] = queue.queued;
    await files.close();
    // The ticket has a token that another process has received, which holds it for a while and dies with it.
    const eve = await site.open({ work: false });
    const received = await (await eve.locks()).receive(token ?? "");
    const box = await openBox(await site.openPorts(), `${site.state}/queue`);
    const handoff = new BoxHandoff(box);
    await handoff.publish(
      { task: "index" },
      { key: "index/1", meta: { task: "index", change: change?.number, token } },
    );
    await handoff.close();
    const ada = await site.open();
    await until(async () => (await waitingIn(ada)).includes("guide"));
    expect(received.signal.aborted).toBe(false);
    await eve.close();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["guide/a"]);
    expect(await locksOf(ada)).toEqual([]);
  });
});

describe("workers whose paths are locked", () => {
  const names = Array.from({ length: 6 }, (_, index) => `locked-${index}.md`);

  /** How often a ticket of the queue was put back, for each that is. */
  async function putBackIn(site: IndexedSite): Promise<number[]> {
    const counts: number[] = [];
    for (const minute of await site.disk.list(`${site.state}/queue/delayed`).catch(() => []))
      for (const name of await site.disk.list(`${site.state}/queue/delayed/${minute}`).catch(() => []))
        counts.push(Number(/~([0-9]+)/.exec(name)?.[1] ?? 0));
    return counts;
  }

  it.each([1, 4])("leave one of %d to what is not locked, and come back to the rest", async (concurrency) => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({ work: false });
    const bob = await site.open({ work: false });
    const locks = await bob.locks();
    const holds = [];
    for (const name of names) {
      const hold = await locks.acquire(name);
      await bob.write(name, "a wolf", { within: hold });
      holds.push(hold);
    }
    await bob.write("free.md", "a wolf");
    ada.work({ concurrency });
    await until(async () => (await found(ada, "wolf")).length > 0);
    expect(await found(ada, "wolf")).toEqual(["free.md"]);
    // More often than a task is tried that fails.
    await until(async () => (await putBackIn(site)).some((times) => times > 3));
    await bob.write("later.md", "a wolf");
    await until(async () => (await found(ada, "wolf")).includes("later.md"));
    for (const hold of holds) await hold.release();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["free.md", "later.md", ...names]);
  });
});

describe("functions of the user", () => {
  it("retries one that fails or hangs, then gives up, and the rest goes on", async () => {
    const site = await indexedOn(makeRealSite);
    const calls = new Map<string, number>();
    const ada = await site.open({
      functionTimeoutMs: 30,
      extract: async (path, content, { signal }) => {
        const count = (calls.get(path) ?? 0) + 1;
        calls.set(path, count);
        if (path === "hangs.md")
          await new Promise<void>((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
        if (path === "deaf.md") await new Promise(() => undefined);
        if (path === "all/broken.md" || (path === "fails.md" && count < 2)) throw new Error("not yet");
        return await content.text();
      },
    });
    for (const name of ["hangs", "deaf", "fails", "works"]) await ada.write(`${name}.md`, `a wolf ${name}`);
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["fails.md", "works.md"]);
    expect(Object.fromEntries(calls)).toEqual({ "hangs.md": 3, "deaf.md": 3, "fails.md": 2, "works.md": 1 });
    // In a directory that is added together, one file that fails keeps no other from being found.
    await ada.add("all", await site.stage("staged", { "one.md": "a wolf", "broken.md": "a wolf", "two.md": "a wolf" }));
    await ada.settled();
    expect(await found(ada, "wolf", "all")).toEqual(["all/one.md", "all/two.md"]);
  });

  it("extracts a file that changes between extraction and publication again", async () => {
    const site = await indexedOn(makeRealSite);
    let hasChanged = false;
    const ada = await site.open({
      extract: async (path, content) => {
        const text = await content.text();
        if (path === "a.md" && !hasChanged) {
          hasChanged = true;
          await site.disk.unlink(`${site.root}/a.md`);
          await site.disk.createFile(`${site.root}/a.md`, Buffer.from("a lynx"), { sync: true });
        }
        return text;
      },
    });
    await ada.write("a.md", "a wolf");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual([]);
    expect(await found(ada, "lynx")).toEqual(["a.md"]);
  });

  it("leaves the work to processes that have all functions of the tree", async () => {
    const site = await indexedOn(makeRealSite);
    const embed = async (text: string): Promise<number[]> => [text.includes("wolf") ? 1 : 0, 0.5];
    const ada = await site.open({ embed });
    await ada.write("a.md", "wolf");
    await ada.settled();
    await ada.close();
    const warned: string[] = [];
    const bob = await site.open({}, (ports) => ({
      ...ports,
      host: Object.create(ports.host, { warn: { value: (message: string) => warned.push(message) } }),
    }));
    await bob.write("b.md", "bear");
    await until(() => warned.length > 0);
    expect(warned[0]).toContain("embed");
    const eve = await site.open({ embed });
    await eve.settled();
    expect((await eve.search("something wolf"))[0]?.path).toBe("a.md");
    expect(await found(eve, "anything")).toEqual(["a.md", "b.md"]);
  });
});

describe("a process without an index", () => {
  const texts = Array.from({ length: 20 }, (_, index) => `${index}.md`);

  // It took the tickets of others, made no documents, and said that they were done.
  it.each(["before", "after"])("leaves indexing to others, also when it was opened %s them", async (when) => {
    const site = await indexedOn(makeRealSite);
    if (when === "before") await site.open({ index: false });
    const ada = await site.open({ work: false });
    for (const path of texts.slice(0, 10)) await ada.write(path, "a wolf");
    if (when === "after") await site.open({ index: false });
    const bob = await site.open();
    for (const path of texts.slice(10)) await ada.write(path, "a wolf");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual([...texts].sort());
    expect(await found(bob, "wolf")).toEqual([...texts].sort());
  });

  it("has its changes indexed by others, and all of them after the same time", async () => {
    const site = await indexedOn(makeRealSite);
    const graceMs = 3_000;
    const writer = await site.open({ index: false });
    for (const path of texts) await writer.write(path, "a wolf");
    const startMs = performance.now();
    const ada = await site.open({ graceMs });
    await until(async () => (await found(ada, "wolf")).length === texts.length);
    // One after the other, they would take as many times as there are changes.
    expect(performance.now() - startMs).toBeLessThan((texts.length / 2) * graceMs);
  });
});

describe("an index that the user gives", () => {
  /** The built-in one, seen only through the interface. */
  async function givenIndex(isShared: boolean): Promise<DerivedIndex & { failure?: Error | undefined }> {
    const index = await TextIndex.open();
    const given = {
      isShared,
      failure: undefined as Error | undefined,
      upsert: async (...args: Parameters<DerivedIndex["upsert"]>) => await index.upsert(...args),
      remove: async (path: string) => {
        if (given.failure !== undefined) throw given.failure;
        await index.remove(path);
      },
      rename: async (from: string, to: string) => await index.rename(from, to),
      search: async (...args: Parameters<DerivedIndex["search"]>) => {
        if (given.failure !== undefined) throw given.failure;
        return await index.search(...args);
      },
    };
    return given;
  }

  it.each([true, false])("is told everything, whether it is one for all processes (%s) or not", async (isShared) => {
    const site = await indexedOn(makeRealSite);
    const one = await givenIndex(isShared);
    const ada = await site.open({ index: one });
    const bob = await site.open({ index: isShared ? one : await givenIndex(false), work: false });
    await bob.write("a", "a wolf");
    await ada.settled();
    await bob.remove("a");
    await bob.write("a/b", "a wolf below");
    await bob.write("c", "a wolf");
    await bob.move("c", "d");
    await bob.settled();
    for (const files of [ada, bob]) {
      await files.settled();
      expect(await found(files, "wolf")).toEqual(["a/b", "d"]);
    }
    await ada.rebuildIndex();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a/b", "d"]);
  });

  // It waited for outcomes that the keeper of snapshots had removed, for ever.
  it.each([true, false])("begins where a snapshot of the built-in one ends (one for all: %s)", async (isShared) => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (const path of ["a", "b"]) {
      await ada.write(path, "a wolf");
      await ada.settled();
      // Publishes a snapshot, and removes the outcomes that the one before it has.
      await ada.rebuildIndex();
    }
    await ada.close();
    const bob = await site.open({ index: await givenIndex(isShared) });
    await bob.settled();
    if (!isShared) expect(await found(bob, "wolf")).toEqual(["a", "b"]);
    await bob.write("c", "a wolf");
    await bob.settled();
    expect(await found(bob, "wolf")).toContain("c");
  });

  it("that throws stops a removal and a move before anything has happened, and fails a search", async () => {
    const site = await indexedOn(makeRealSite);
    const index = await givenIndex(true);
    const ada = await site.open({ index });
    await ada.write("a", "a wolf");
    await ada.settled();
    index.failure = new Error("the index is down");
    expect(await codeOf(ada.remove("a"))).toBe("INDEX_FAILED");
    expect(await codeOf(ada.move("a", "b"))).toBe("INDEX_FAILED");
    expect(await codeOf(ada.search("wolf"))).toBe("INDEX_FAILED");
    expect(await ada.readText("a")).toBe("a wolf");
    index.failure = undefined;
    await ada.remove("a");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual([]);
  });
});

describe("the indexing of a process", () => {
  it("refuses no operation of the same process that does not want to wait", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (let each = 0; each < 60; each++) await ada.write("a.md", `wolf ${each}`, { timeoutMs: 0 });
    await ada.settled();
    expect(await found(ada, "59")).toEqual(["a.md"]);
  });

  it("is named when it holds what was added, and is worth waiting for", async () => {
    const site = await indexedOn(makeRealSite);
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const extract = async (): Promise<undefined> => {
      await released;
      return undefined;
    };
    const ada = await site.open({ extract });
    await ada.add("guide", await site.stage("staged", { "a.md": "a" }));
    for (const call of [() => ada.remove("guide", { timeoutMs: 0 }), () => ada.remove("guide", { timeoutMs: 150 })])
      await expect(call()).rejects.toMatchObject({
        code: "RESOURCE_BUSY",
        worthWaiting: true,
        blockedBy: [{ path: "guide", tag: expect.stringMatching(/^files: /) }],
      });
    release();
    await ada.remove("guide");
  });
});

describe("a committed change that cannot be completed", () => {
  it("keeps neither settled() nor close() waiting for ever", async () => {
    const site = await indexedOn(makeRealSite);
    let isInUse = true;
    const inUse = withDisk((disk) => ({
      rename: async (from, to) => {
        if (isInUse && to.endsWith("/used.md")) throw diskError("EACCES", "rename", to);
        await disk.rename(from, to);
      },
    }));
    const ada = await IndexedFiles.open(await openTree(inUse(await site.openPorts()), site.root));
    await expect(ada.write("used.md", "wolf")).rejects.toMatchObject({ code: "RESOURCE_BUSY", committed: true });
    await expect(ada.settled()).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      path: expect.stringContaining("used.md"),
    });
    const startMs = performance.now();
    expect(await codeOf(ada.close())).toBe("RESOURCE_BUSY");
    expect(performance.now() - startMs).toBeLessThan(20_000);
    isInUse = false;
    const bob = await site.open();
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["used.md"]);
  });
});

describe("settled()", () => {
  it("ends when outcomes were deleted alone, and everything is found", async () => {
    const site = await indexedOn(makeRealSite);
    const before = await site.open();
    await before.write("a.md", "a wolf");
    await before.settled();
    await before.close();
    await removeTree(site.disk, `${site.state}/documents/outcomes`);
    const ada = await site.open();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md"]);
    await ada.write("b.md", "a wolf");
    await removeTree(site.disk, `${site.state}/documents/outcomes`);
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md", "b.md"]);
  });

  it("tells that the disk is full, and ends when there is room again, in the same process", async () => {
    const site = await indexedOn(makeRealSite);
    let isFull = false;
    const small = withDisk((disk) => ({
      createFile: async (path, ...rest) => {
        if (isFull && path.includes("/.holdfast/")) throw diskError("ENOSPC", "create", path);
        await disk.createFile(path, ...rest);
      },
    }));
    const ada = await site.open({ retry: { attempts: 2, backoffMs: { min: 1, max: 2 } } }, small);
    await ada.write("a.md", "a wolf");
    await ada.settled();
    for (const kept of ["b.md", "c.md"]) {
      await ada.write(kept, "a wolf");
      isFull = true;
      // Time passes: on a full disk the wait for the work may have no end.
      const end = await Promise.race([codeOf(ada.settled()), new Promise((resolve) => setTimeout(resolve, 3000))]);
      expect([undefined, "DISK_FULL", "nothing failed"]).toContain(end);
      isFull = false;
    }
    await until(async () => (await codeOf(ada.settled())) === "nothing failed");
    expect(await found(ada, "wolf")).toEqual(["a.md", "b.md", "c.md"]);
    expect(await ada.verify()).toMatchObject({ ok: true, checked: 3 });
  });
});

it("a change by another program is found while work on other paths waits, and is queued again once", async () => {
  const site = await indexedOn(makeRealSite);
  const ada = await site.open({ work: false });
  const worker = ada.work();
  await ada.write("d/a.md", "wolf");
  await ada.settled();
  await worker.stop();
  await site.disk.unlink(`${site.root}/d/a.md`);
  for (const [path, text] of [
    ["d/a.md", "otter"],
    ["foreign.md", "lynx"],
  ] as const)
    await site.disk.createFile(`${site.root}/${path}`, Buffer.from(text), { sync: true });
  await ada.write("waits.md", "work waits for this one");
  const { ok, checked, problems } = await ada.verify({ repair: true });
  expect({ ok, checked }).toEqual({ ok: true, checked: 3 });
  expect(problems.map(({ path, repaired }) => ({ path, repaired }))).toEqual([
    { path: "d/a.md", repaired: true },
    { path: "foreign.md", repaired: true },
  ]);
  expect((await ada.verify({ repair: true })).problems).toEqual([]);
  ada.work();
  await ada.settled();
  expect([await found(ada, "otter"), await found(ada, "lynx")]).toEqual([["d/a.md"], ["foreign.md"]]);
});

describe("a function that a process was once opened with", () => {
  it("is said to be missing, instead of waited for, and can be forgotten", async () => {
    const site = await indexedOn(makeRealSite);
    const before = await site.open({ embed: async () => [1, 2] });
    await before.write("a.md", "wolf");
    await before.settled();
    const ada = await site.open();
    await ada.write("b.md", "wolf");
    // As long as a process has it, that one is waited for.
    await ada.settled();
    await before.close();
    await ada.write("c.md", "wolf");
    await expect(ada.settled()).rejects.toMatchObject({
      code: "INDEX_FAILED",
      message: expect.stringContaining("embed"),
    });
    expect(await codeOf(ada.rebuildIndex())).toBe("INDEX_FAILED");
    expect(await ada.rebuildIndex({ forgetFunctions: true })).toBe(3);
    await ada.write("d.md", "wolf");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md", "b.md", "c.md", "d.md"]);
  });
});
