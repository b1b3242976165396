// The change log: every change is in it, in one order for all processes, before it happens.
import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { ChangeLog } from "../../src/files/change-log/change-log.ts";
import { changeKind } from "../../src/files/change-log/change-record.ts";
import type { Change } from "../../src/files/model/file-tree.ts";
import { FilesLayout } from "../../src/files/tree/layout.ts";
import { encodeRecord } from "../../src/format/record.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesOn } from "./file-sites.ts";

/** The first `count` of them. */
async function take(changes: AsyncIterable<Change>, count: number): Promise<Change[]> {
  const found: Change[] = [];
  for await (const change of changes) if (found.push(change) === count) break;
  return found;
}

/** Without who made it, and when. */
function unsigned({ by: _by, at: _at, ...change }: Change): Change {
  return change;
}

describe.each(sites)("changes on %s", (_name, make) => {
  it("every follower gets every change, in one order, from the number that it names", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    const following = take(bob.changes(), 5);
    await ada.write("a/x", "1");
    await bob.write("b", "1");
    await ada.move("a", "c");
    await bob.remove("b");
    await ada.add("a", await site.stage("staged", { y: "2" }));
    const all = [
      { number: 1, kind: "written", path: "a/x" },
      { number: 2, kind: "written", path: "b" },
      { number: 3, kind: "moved", path: "c", from: "a" },
      { number: 4, kind: "removed", path: "b" },
      { number: 5, kind: "written", path: "a" },
    ];
    const taken = async (changes: AsyncIterable<Change>, count: number): Promise<Change[]> =>
      (await take(changes, count)).map(unsigned);
    expect((await following).map(unsigned)).toEqual(all);
    expect(await taken(ada.changes({ after: 0 }), 5)).toEqual(all);
    expect(await taken(ada.changes({ after: 3 }), 2)).toEqual(all.slice(3));
    expect(await taken(ada.changes({ after: 0, under: "a" }), 3)).toEqual([all[0], all[2], all[4]]);
  });

  it("the history gives the latest first, in pages, and does not wait for a path that is locked", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    await ada.write("a/x", "1");
    await ada.write("b", "1");
    await using hold = await (await bob.locks()).acquire("a", { mode: "tree" });
    await bob.write("a/y", "1", { within: hold });
    const pathsOf = (changes: readonly Change[]): string[] => changes.map(({ number, path }) => `${number} ${path}`);
    expect(pathsOf(await ada.history())).toEqual(["3 a/y", "2 b", "1 a/x"]);
    expect(pathsOf(await ada.history({ limit: 1 }))).toEqual(["3 a/y"]);
    expect(pathsOf(await ada.history({ before: 3, after: 1 }))).toEqual(["2 b"]);
    expect(pathsOf(await ada.history({ under: "a", limit: 5 }))).toEqual(["3 a/y", "1 a/x"]);
    await expect(ada.history({ limit: -1 })).rejects.toThrow("limit must be a whole number");
  });

  it("every change names the process that made it and the time, and one of an earlier build is read without", async () => {
    const site = await filesOn(make);
    const ada = await site.open();
    const { clock, disk } = await site.openPorts();
    const startMs = clock.wallMs();
    await ada.write("a", "1");
    const [held] = await (await ada.locks()).acquire("x").then(async () => await (await ada.locks()).list());
    const [change] = await take(ada.changes({ after: 0 }), 1);
    const { id, host, pid } = held?.holder ?? {};
    expect(change).toMatchObject({ number: 1, path: "a", by: { id, host, pid } });
    expect(change?.at?.getTime()).toBeGreaterThanOrEqual(startMs);
    expect(change?.at?.getTime()).toBeLessThanOrEqual(clock.wallMs());
    const layout = new FilesLayout(`${site.root}/.holdfast`);
    const old = encodeRecord(changeKind, { id: "of an earlier build", kind: "written", path: "b" });
    await disk.createFile(layout.change(2), old, { sync: true });
    expect(await take(ada.changes({ after: 1 }), 1)).toEqual([{ number: 2, kind: "written", path: "b" }]);
  });

  it("a follower is told when the hold that announced the change is over", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    const hold = await (await ada.locks()).acquire("a", { mode: "tree" });
    const seen: string[] = [];
    const following = (async () => {
      for await (const { path } of bob.changes({ after: 0 })) {
        seen.push(path);
        if (path === "b") return;
      }
    })();
    await ada.write("a/x", "1", { within: hold });
    await ada.write("b", "1");
    seen.push("released");
    await hold.release();
    await following;
    expect(seen).toEqual(["released", "a/x", "b"]);
  });

  it("an iteration ends when its signal aborts, and with CLOSED when the tree is closed", async () => {
    const site = await filesOn(make);
    const [ada, bob] = [await site.open(), await site.open()];
    const aborting = new AbortController();
    const aborted = take(ada.changes({ signal: aborting.signal }), 1);
    aborting.abort(new Error("enough"));
    expect(await aborted).toEqual([]);
    // Listened to at once: it rejects while the tree is being closed.
    const closed = codeOf(take(bob.changes(), 1));
    await bob.close();
    expect(await closed).toBe("CLOSED");
  });

  it("numbers are won once, by whichever process, without a gap", async () => {
    const { directory, openPorts } = await make();
    const grounds = [await Ground.open(await openPorts(), directory), await Ground.open(await openPorts(), directory)];
    const logs = grounds.map((ground) => new ChangeLog(ground.staging, new FilesLayout(directory)));
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, index) => logs[index % 2]!.append({ kind: "written", path: `${index}` })),
    );
    expect(made.map(({ number }) => number).sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
    const fresh = new ChangeLog(grounds[0]!.staging, new FilesLayout(directory));
    expect(await fresh.last()).toBe(12);
    const read = await fresh.readAfter(0);
    expect(read.map(({ number }) => number)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
    expect(await fresh.readAfter(0, { limit: 5 })).toHaveLength(5);
    expect(await fresh.readAfter(12)).toEqual([]);
    for (const ground of grounds) await ground.close();
  });
});

describe("callers of one process that announce at once", () => {
  it("get consecutive numbers with one link each, and share a sync of the directory", async () => {
    const [, make] = sites.find(([name]) => name === "the memory disk")!;
    const { directory, openPorts } = await make();
    const ground = await Ground.open(await openPorts(), directory);
    const made = { links: 0, syncs: 0 };
    const { disk, ...staging } = ground.staging;
    const counting = Object.create(disk, {
      link: { value: async (from: string, to: string) => (made.links++, await disk.link(from, to)) },
      syncDirectory: { value: async (path: string) => (made.syncs++, await disk.syncDirectory(path)) },
    }) as Disk;
    const log = new ChangeLog({ ...staging, disk: counting }, new FilesLayout(directory));
    await log.append({ kind: "written", path: "first" });
    const staged = await Promise.all(
      Array.from({ length: 16 }, (_, index) => log.stage({ kind: "written", path: `${index}` })),
    );
    Object.assign(made, { links: 0, syncs: 0 });
    const announced = await Promise.all(staged.map((each) => log.announce(each)));
    expect(announced.map(({ number, path }) => [number, path])).toEqual(
      staged.map((_, index) => [index + 2, `${index}`]),
    );
    // The first caller does not wait for others.
    expect(made).toEqual({ links: 16, syncs: 2 });
    await ground.close();
  });
});

describe("a long change log", () => {
  it("goes on in the next directory, and is read across it", async () => {
    const [, make] = sites.find(([name]) => name === "the memory disk")!;
    const { directory, openPorts } = await make();
    const ground = await Ground.open(await openPorts(), directory);
    const layout = new FilesLayout(directory);
    const log = new ChangeLog(ground.staging, layout);
    for (let count = 0; count < 1003; count++) await log.append({ kind: "written", path: `${count}` });
    expect(await ground.ports.disk.list(layout.changes)).toEqual(["0000000000", "0000000001"]);
    const fresh = new ChangeLog(ground.staging, layout);
    expect(await fresh.last()).toBe(1003);
    expect((await fresh.readAfter(997)).map(({ number }) => number)).toEqual([998, 999, 1000, 1001, 1002, 1003]);
    await ground.close();
  });
});
