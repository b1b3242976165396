// The change log: every change is in it, in one order for all processes, before it happens.
import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { ChangeLog } from "../../src/files/change-log/change-log.ts";
import type { Change } from "../../src/files/model/file-tree.ts";
import { FilesLayout } from "../../src/files/tree/layout.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesOn } from "./file-sites.ts";

/** The first `count` of them. */
async function take(changes: AsyncIterable<Change>, count: number): Promise<Change[]> {
  const found: Change[] = [];
  for await (const change of changes) if (found.push(change) === count) break;
  return found;
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
    expect(await following).toEqual(all);
    expect(await take(ada.changes({ after: 0 }), 5)).toEqual(all);
    expect(await take(ada.changes({ after: 3 }), 2)).toEqual(all.slice(3));
    expect(await take(ada.changes({ after: 0, under: "a" }), 3)).toEqual([all[0], all[2], all[4]]);
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
