// Folded blocks of the change log: every change is read as before, and one damaged line costs one change.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ensureDirectory } from "../../src/durable/publish/directory.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { ChangeLog } from "../../src/files/change-log/change-log.ts";
import { changeKind } from "../../src/files/change-log/change-record.ts";
import { ChangeFolder } from "../../src/files/change-log/fold.ts";
import { recordsIn, segmentLine } from "../../src/files/change-log/segment.ts";
import { verifyRecords } from "../../src/files/verify/verify-records.ts";
import { FilesLayout } from "../../src/files/tree/layout.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import type { Change } from "../../src/files/model/file-tree.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { upgradeStore } from "../../src/index.ts";
import { Findings } from "../../src/part/findings.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { layOut } from "../compatibility/earlier-builds.ts";
import { makeScratch } from "../sites/scratch.ts";
import { sites, type Site } from "../sites/sites.ts";

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const now = { nowMs: 0, afterMs: -Infinity };

/** All changes, as a follower reads them. */
async function readAll(log: ChangeLog): Promise<Change[]> {
  const found: Change[] = [];
  for (let next = await log.readAfter(0); next.length > 0; next = await log.readAfter(found.length))
    found.push(...next);
  return found;
}

interface Folded {
  readonly ground: Ground;
  readonly disk: Disk;
  readonly layout: FilesLayout;
  readonly open: () => ChangeLog;
  readonly log: ChangeLog;
  readonly folder: ChangeFolder;
}

/** A log with 14 changes in blocks of 4: the first two blocks may be folded. */
async function logOn(make: () => Promise<Site>): Promise<Folded> {
  const { directory, openPorts } = await make();
  const ground = await Ground.open(await openPorts(), directory);
  const layout = new FilesLayout(directory, { changesPerBlock: 4 });
  const open = (): ChangeLog => new ChangeLog(ground.staging, layout);
  const log = open();
  for (const number of numbers(14)) await log.append({ kind: "written", path: `${number}` });
  const folder = new ChangeFolder(ground.staging, layout);
  return { ground, disk: ground.ports.disk, layout, open, log, folder };
}

describe.each(sites)("a folded change log on %s", (_name, make) => {
  it("is read, checked and continued as before, and has one file for each folded block", async () => {
    const { ground, disk, layout, open, log, folder } = await logOn(make);
    const before = await readAll(open());
    expect(await folder.fold(now)).toBe(2);
    expect(await folder.fold(now)).toBe(0);
    expect((await disk.list(layout.changes)).sort()).toEqual([
      "0000000000.log",
      "0000000001.log",
      "0000000002",
      "0000000003",
    ]);
    for (const each of [open(), log]) {
      expect(await readAll(each)).toEqual(before);
      expect(await each.readAfter(4, { limit: 2 })).toEqual(before.slice(4, 6));
    }
    const fresh = open();
    expect([await fresh.has(2), await fresh.has(15)]).toEqual([true, false]);
    expect(await fresh.findId(2)).toBe(await log.findId(2));
    expect((await fresh.append({ kind: "written", path: "15" })).number).toBe(15);
    await ground.close();
  });

  it("gives a process that slept since an early change the next number", async () => {
    const { ground, layout, open, folder } = await logOn(make);
    for (const slept of [2, 3, 7]) {
      const sleeper = open();
      await sleeper.find(slept);
      await folder.fold(now);
      const { number } = await sleeper.append({ kind: "written", path: `after ${slept}` });
      expect(number).toBe(await open().last());
      expect(await sleeper.last()).toBe(number);
    }
    expect(layout.blockOf(await open().last())).toBe(4);
    await ground.close();
  });

  it("is folded once by any number of processes", async () => {
    const { ground, open, layout, folder } = await logOn(make);
    await Promise.all([folder.fold(now), new ChangeFolder(ground.staging, layout).fold(now), folder.fold(now)]);
    expect((await readAll(open())).map(({ path }) => path)).toEqual(numbers(14).map(String));
    await ground.close();
  });

  it("keeps a block with a damaged or missing record as it is", async () => {
    const { ground, disk, layout, open, folder } = await logOn(make);
    await disk.unlink(layout.change(2));
    expect(await folder.fold(now)).toBe(1);
    expect((await disk.list(layout.changeBlock(1))).length).toBe(2);
    const read = await readAll(open());
    expect(read.map(({ path, damaged }) => damaged ?? path)).toEqual(
      numbers(14).map((number) => (number === 2 ? "Change 2 is missing." : `${number}`)),
    );
    await ground.close();
  });
});

describe("a damaged segment", () => {
  it("costs the changes of its damaged lines; verify names each, and repair puts changes of the whole tree there", async () => {
    const [, make] = sites.find(([name]) => name === "the memory disk")!;
    const { directory, openPorts } = await make();
    const { tree, close } = await openTree(await openPorts(), `${directory}/tree`);
    const { layout, disk, changes } = tree;
    for (const path of ["first", "second"]) await changes.append({ kind: "written", path });
    const record = await disk.readFile(layout.change(1), 10_000);
    // Lines 1 to 999, of which two are damaged: one is cut, in one a digit is flipped.
    const lines = numbers(999).map((number) => segmentLine(number, record));
    lines[6] = lines[6]!.slice(20);
    lines[8] = lines[8]!.replace("first", "fjrst");
    for (const number of [1, 2]) await disk.unlink(layout.change(number));
    await disk.rmdir(layout.changeBlock(1));
    await disk.createFile(layout.changeSegment(1), Buffer.from(lines.join("")), { sync: true });
    await disk.mkdir(layout.changeBlock(1000));
    await disk.createFile(layout.change(1000), record, { sync: true });

    const fresh = new ChangeLog(tree.ground.staging, layout);
    const read = await fresh.readAfter(0, { limit: 2000 });
    expect(read.length).toBe(1000);
    expect(read.filter(({ damaged }) => damaged !== undefined).map(({ number }) => number)).toEqual([7, 9]);

    const verified = async (repair: boolean): Promise<readonly { what: string }[]> => {
      const findings = new Findings();
      await verifyRecords(tree, { findings, repair, onRecord: () => undefined });
      return findings.problems;
    };
    expect((await verified(false)).map(({ what }) => /Change [0-9]+/.exec(what)?.[0])).toEqual([
      "Change 7",
      "Change 9",
    ]);
    expect(await verified(true)).toHaveLength(2);
    expect(await verified(false)).toEqual([]);
    expect(recordsIn(await disk.readFile(layout.changeSegment(1), 10_000_000)).size).toBe(999);
    await close();
  });
});

describe("a tree that an older release can use", () => {
  it("is not folded before it is upgraded, because that release would take folded changes for lost ones", async () => {
    const root = makeScratch();
    await layOut(root, "first-format.json");
    const directory = join(root, "locks");
    const folded = async (): Promise<number> => {
      const { tree, close } = await openTree(await openNodePorts(directory), directory);
      const { layout, disk } = tree;
      await ensureDirectory(disk, layout.changeBlock(2000));
      await ensureDirectory(disk, layout.changeBlock(1));
      const record = encodeRecord(changeKind, { id: "any", kind: "written", path: "a" });
      for (const number of numbers(999))
        await disk.createFile(layout.change(number), record, { sync: false }).catch(() => undefined);
      const count = await tree.foldChanges({ afterMs: -Infinity });
      await close();
      return count;
    };
    expect(await folded()).toBe(0);
    await upgradeStore(directory);
    expect(await folded()).toBe(1);
  });
});
