// Searching a tree that several processes change: what is found is there, with that content; and nothing is missing.
import { createHash } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { TextIndex } from "../../../src/files/engine/text-index.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import { Generations } from "../../../src/part/generations.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { sites } from "../../sites/sites.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { codeOf } from "../file-sites.ts";
import { found, indexedOn, locksOf } from "./indexed-sites.ts";

describe.each(sites)("searching a tree on %s", (_name, make) => {
  it("finds in each process what any process has written, moved and added, and no longer what was removed", async () => {
    const site = await indexedOn(make);
    const [ada, bob] = [await site.open(), await site.open({ work: false })];
    await ada.write("notes/wolf.md", "The wolf lives in the north.");
    await bob.write("notes/bear.md", "The bear sleeps.");
    const { task } = await bob.add(
      "guide",
      await site.stage("staged", { "one.md": "wolf tracks", "sub/two.md": "bear" }),
    );
    expect(task).not.toBe("");
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["guide/one.md", "notes/wolf.md"]);
    expect(await found(bob, "bear", "guide")).toEqual(["guide/sub/two.md"]);
    // The lock that went to the worker is released.
    await bob.move("guide", "manual");
    // Before any work on it: what is gone is not found.
    expect(await found(ada, "wolf")).not.toContain("guide/one.md");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["manual/one.md", "notes/wolf.md"]);
    await ada.remove("notes");
    // A search waits only for a moment for what others have indexed: it may miss a file, and gives none that is gone.
    expect(await found(bob, "wolf")).not.toContain("notes/wolf.md");
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["manual/one.md"]);
    await bob.write("manual/one.md", "a lynx now");
    expect(await found(ada, "wolf")).toEqual([]);
    await ada.settled();
    expect(await found(ada, "lynx")).toEqual(["manual/one.md"]);
    expect(await ada.stat("manual/one.md")).toMatchObject({ indexed: true });
    expect(await locksOf(ada)).toEqual([]);
  });

  it("keeps of two contents that follow each other quickly the last one", async () => {
    const site = await indexedOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    for (let round = 0; round < 5; round++) await (round % 2 === 0 ? ada : bob).write("a.md", `text number${round}`);
    await bob.settled();
    expect(await found(bob, "text")).toEqual(["a.md"]);
    expect(await found(bob, "number4")).toEqual(["a.md"]);
    expect(await found(bob, "number3")).toEqual([]);
  });
});

describe("an index and its tree", () => {
  it("indexes what was in the folder before it was a tree", async () => {
    const site = await indexedOn(makeRealSite);
    await site.stage("tree", { "old/wolf.md": "a wolf", binary: "\0\u0001" });
    const ada = await site.open();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["old/wolf.md"]);
    expect(await ada.stat("binary")).toMatchObject({ indexed: false });
  });

  it("can be deleted at any moment, and is built to the same answers", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (const name of ["wolf", "bear", "lynx"]) await ada.write(`${name}.md`, `a ${name} and a fox`);
    await ada.settled();
    const before = await ada.search("fox");
    // In one step each: what is deleted file by file may take with it what the next index has made by then.
    for (const part of ["documents", "index"])
      await site.disk.rename(`${site.state}/${part}`, `${site.directory}/${part}`).catch(unlessMissing);
    // The process that has it open goes on, and a new one begins with nothing.
    const bob = await site.open();
    for (const files of [bob, ada]) {
      await files.settled();
      expect((await files.search("fox")).sort(byPath)).toEqual([...before].sort(byPath));
    }
    expect(await ada.rebuildIndex()).toBe(3);
    expect((await ada.search("fox")).sort(byPath)).toEqual([...before].sort(byPath));
  });

  // The work of the process ended with the error of the snapshot.
  it("goes on with its work when the snapshots are deleted while one is published", async () => {
    const site = await indexedOn(makeRealSite);
    let deletions = 0;
    const ada = await site.open({}, (ports) => {
      const rename = async (from: string, to: string): Promise<void> => {
        if (to.endsWith("/snapshot.json") && ++deletions === 1) await removeTree(ports.disk, `${site.state}/index`);
        await ports.disk.rename(from, to);
      };
      return { ...ports, disk: withMethod(ports.disk, "rename", rename) };
    });
    await ada.write("a", "a wolf");
    await ada.settled();
    await ada.rebuildIndex();
    expect(deletions).toBe(1);
    await ada.write("b", "a wolf");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a", "b"]);
    await ada.rebuildIndex();
    expect(deletions).toBe(2);
    expect(await found(await site.open({ work: false }), "wolf")).toEqual(["a", "b"]);
  });

  it("detects a file that another program has changed, reports it, and indexes it again", async () => {
    const site = await indexedOn(makeRealSite);
    const warned: string[] = [];
    const ada = await site.open({}, (ports) => {
      const host = Object.create(ports.host, { warn: { value: (message: string) => warned.push(message) } });
      return { ...ports, host };
    });
    await ada.write("a.md", "a wolf");
    await ada.write("b.md", "a bear");
    await ada.settled();
    const { writeFile } = await import("node:fs/promises");
    await writeFile(`${site.root}/a.md`, "a wolf and a lynx");
    await writeFile(`${site.root}/b.md`, "an otter");
    expect(await found(ada, "wolf")).toEqual([]);
    expect(warned.join()).toContain("a.md differs from what");
    await ada.settled();
    expect(await found(ada, "lynx")).toEqual(["a.md"]);
    // One that no search meets is found by verify.
    expect((await ada.verify()).problems).toMatchObject([{ path: "b.md", severity: "note" }]);
    await ada.verify({ repair: true });
    await ada.settled();
    expect(await found(ada, "otter")).toEqual(["b.md"]);
    expect((await ada.verify()).problems).toEqual([]);
  });

  it("accuses no other program of what a process of Holdfast writes while it is searched for", async () => {
    const site = await indexedOn(makeRealSite);
    const bob = await site.open();
    const warned: string[] = [];
    let whenOpened: (() => Promise<void>) | undefined;
    const ada = await site.open({ work: false }, (ports) => {
      const open: Disk["open"] = async (path, mode) => {
        const call = path.endsWith("/a.md") ? whenOpened : undefined;
        whenOpened = call === undefined ? whenOpened : undefined;
        await call?.();
        return await ports.disk.open(path, mode);
      };
      const host = Object.create(ports.host, { warn: { value: (message: string) => warned.push(message) } });
      return { ...ports, host, disk: withMethod(ports.disk, "open", open) };
    });
    await bob.write("a.md", "a wolf");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["a.md"]);
    // Between the answer of the index and the look at the file it is written, indexed, and taken up by this process.
    whenOpened = async () => {
      await bob.write("a.md", "a wolf and a lynx");
      await ada.settled();
    };
    expect(await found(ada, "wolf")).toEqual([]);
    expect(warned).toEqual([]);
    expect(await site.disk.list(`${site.state}/changes/0000000000`)).toHaveLength(2);
    expect(await found(ada, "lynx")).toEqual(["a.md"]);
  });

  it("finds what was indexed before a change whose file is away when it is worked on", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open({ work: false });
    const working = ada.work();
    await ada.write("a.md", "a wolf");
    await ada.settled();
    await working.stop();
    await ada.write("a.md", "a wolf");
    await site.disk.rename(`${site.root}/a.md`, `${site.directory}/away`);
    const again = ada.work();
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual([]);
    await site.disk.rename(`${site.directory}/away`, `${site.root}/a.md`);
    expect(await found(ada, "wolf")).toEqual(["a.md"]);
    await ada.remove("a.md");
    await ada.settled();
    await again.stop();
    await site.disk.createFile(`${site.root}/a.md`, Buffer.from("a wolf"), { sync: true });
    expect(await found(ada, "wolf")).toEqual([]);
  });

  it("hides a file while another program has it away, and finds it as soon as it is back", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    await ada.write("a.md", "a wolf");
    await ada.write("d/b.md", "a wolf");
    await ada.settled();
    for (const away of ["a.md", "d"]) {
      await site.disk.rename(`${site.root}/${away}`, `${site.directory}/away`);
      expect(await found(ada, "wolf")).toHaveLength(1);
      await site.disk.rename(`${site.directory}/away`, `${site.root}/${away}`);
      expect(await found(ada, "wolf")).toEqual(["a.md", "d/b.md"]);
    }
    await ada.close();
    const bob = await site.open();
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["a.md", "d/b.md"]);
    expect(await bob.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("asks for more when hits are gone, so that others take their place", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (let i = 0; i < 6; i++) await ada.write(`${i}.md`, "wolf ".repeat(i + 1));
    await ada.settled();
    const [first, second] = await ada.search("wolf");
    for (const hit of [first, second]) await site.disk.unlink(`${site.root}/${hit?.path}`);
    expect(await ada.search("wolf", { limit: 2 })).toHaveLength(2);
  });

  it("begins with a snapshot that another process has published, and goes on from there", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`${i}.md`, `wolf number${i}`]));
    await ada.add("many", await site.stage("staged", files));
    await ada.settled();
    await ada.rebuildIndex();
    // The second one removes the outcomes that the first one has.
    await ada.rebuildIndex();
    await ada.write("late.md", "a late wolf");
    await ada.settled();
    const opening = vi.spyOn(TextIndex, "open");
    const bob = await site.open({ work: false });
    expect(await found(bob, "wolf")).toHaveLength(31);
    expect(opening.mock.calls[0]?.[0]?.length).toBeGreaterThan(1000);
    // A snapshot that is damaged is none.
    const [catalog] = (await site.disk.list(`${site.state}/index`)).filter((name) => /^[0-9]+$/.test(name));
    const directory = `${site.state}/index/${catalog}`;
    for (const name of await site.disk.list(directory))
      if (name.endsWith(".sqlite")) {
        await site.disk.unlink(`${directory}/${name}`);
        await site.disk.createFile(`${directory}/${name}`, Buffer.from("nothing"), { sync: true });
      }
    opening.mockClear();
    const eve = await site.open({ work: false });
    expect(await found(eve, "wolf")).toHaveLength(31);
    expect(opening.mock.calls[0]?.[0]).toBeUndefined();
    opening.mockRestore();
    // Its documents are all there, so nothing is waited for.
    await eve.settled();
  });

  it("does not load a snapshot of an older version, has its documents, and replaces it", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (const name of ["a", "b"]) await ada.write(`${name}.md`, "中文 wolf");
    await ada.settled();
    await ada.close();
    // As an older build leaves it: a snapshot that is its own, and no outcomes up to it.
    const ports = await site.openPorts();
    const ground = await Ground.open(ports, `${site.root}/.holdfast`);
    onTestFinished(() => ground.close());
    const index = `${site.state}/index`;
    const catalog = await Generations.open(ground.staging, index, ports.host.bootId);
    await catalog.nameBuilding(1, undefined);
    const bytes = Buffer.from("an older engine");
    const { id } = (
      JSON.parse(Buffer.from(await site.disk.readFile(`${site.state}/documents/index.json`, 1e6)).toString()) as {
        body: { id: string };
      }
    ).body;
    const record = {
      index: id,
      position: 2,
      file: "x.sqlite",
      sha256: createHash("sha256").update(bytes).digest("hex"),
    };
    const kind = { kind: "snapshot", decode: () => record };
    await site.disk.mkdir(catalog.directoryOf(1));
    await site.disk.createFile(`${catalog.directoryOf(1)}/x.sqlite`, bytes, { sync: true });
    await site.disk.createFile(`${catalog.directoryOf(1)}/snapshot.json`, encodeRecord(kind, record), { sync: true });
    await catalog.switchTo(1);
    await removeTree(site.disk, `${site.state}/documents/outcomes`);
    const opening = vi.spyOn(TextIndex, "open");
    const bob = await site.open();
    expect(await found(bob, "中文")).toEqual(["a.md", "b.md"]);
    expect(opening.mock.calls.map(([given]) => given)).toEqual([undefined]);
    opening.mockRestore();
    // Nothing is waited for, and nothing is indexed again.
    await bob.settled();
    expect((await bob.stats()).changes).toBe(2);
    await bob.rebuildIndex();
    expect((await catalog.read()).current).toMatchObject({ version: 2 });
  });

  it("shows the progress of a rebuild, and can be interrupted", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    for (let i = 0; i < 4; i++) await ada.write(`${i}.md`, "a wolf");
    await ada.settled();
    const steps: string[] = [];
    expect(await ada.rebuildIndex({ onProgress: (done, total) => steps.push(`${done}/${total}`) })).toBe(4);
    expect(steps).toEqual(["1/4", "2/4", "3/4", "4/4"]);
    const over = new AbortController();
    const rebuilding = ada.rebuildIndex({ signal: over.signal, onProgress: () => over.abort(new Error("enough")) });
    await expect(rebuilding).rejects.toThrow("enough");
    await ada.settled();
    expect(await found(ada, "wolf")).toHaveLength(4);
  });

  it("says what is wrong with a search", async () => {
    const site = await indexedOn(makeRealSite);
    const ada = await site.open();
    await expect(ada.search(7 as never)).rejects.toThrow(TypeError);
    await expect(ada.search("a", { limit: 0 })).rejects.toThrow(RangeError);
    await expect(ada.search("a", { depth: 1 } as never)).rejects.toThrow('no option "depth"');
    expect(await codeOf(ada.search("a", { under: "../out" }))).toBe("INVALID_PATH");
    const bob = await site.open({ index: false, work: false });
    await expect(bob.search("a")).rejects.toThrow("without an index");
    await bob.settled();
    await ada.close();
    expect(await codeOf(ada.search("a"))).toBe("CLOSED");
  });
});

function byPath(one: { path: string }, other: { path: string }): number {
  return one.path < other.path ? -1 : 1;
}

/** There is no snapshot yet. */
function unlessMissing(error: unknown): void {
  if (!hasErrno(error, "ENOENT")) throw error;
}

/** A disk of which one method is another. */
function withMethod<Name extends keyof Disk>(disk: Disk, name: Name, method: Disk[Name]): Disk {
  return new Proxy(disk, {
    get: (target, property) => {
      const found: unknown = property === name ? method : Reflect.get(target, property, target);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

it("a search whose embed fails or takes too long rejects with INDEX_FAILED, and the reason of it", async () => {
  const site = await indexedOn(makeRealSite);
  const embed = async (text: string): Promise<number[]> => {
    if (text === "hangs") await new Promise(() => undefined);
    if (text === "fails") throw new Error("no model");
    return [1, 2];
  };
  const ada = await site.open({ embed, functionTimeoutMs: 50 });
  for (const [text, why] of [
    ["hangs", "took longer"],
    ["fails", "no model"],
  ] as const)
    await expect(ada.search(text)).rejects.toMatchObject({
      code: "INDEX_FAILED",
      message: expect.stringContaining(why),
    });
});
