// What a backup reads while programs change it, and what it does with entries of other programs.
import { appendFileSync, linkSync, mkdirSync, rmSync, statSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs"; // prettier-ignore
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FolderTarget } from "../../src/backup/target/folder-target.ts";
import { BackupWriter, sha256 } from "../../src/backup/write/backup-writer.ts";
import { Copier } from "../../src/backup/write/copier.ts";
import { holdfastError } from "../../src/errors.ts";
import { slotName } from "../../src/format/name.ts";
import { backup } from "../../src/index.ts";
import { HoldHandle } from "../../src/locks/path/hold-handle.ts";
import { NodeDisk } from "../../src/ports/node/disk/disk.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeSite, type Site } from "./site.ts";

async function makeTree(): Promise<Site> {
  const site = await makeSite();
  await (await site.store.files()).write("plan.md", "buy paint");
  onTestFinished(() => void vi.restoreAllMocks());
  return site;
}

describe("two files with one inode", () => {
  /** A store on a file system that gives every file the inode that the last one left. */
  async function makeCopier(): Promise<{ copier: Copier; store: string }> {
    const store = makeScratch();
    const ports = await openNodePorts(store);
    const findStat = ports.disk.findStat.bind(ports.disk);
    ports.disk.findStat = async (path) => {
      const stat = await findStat(path);
      return stat && { ...stat, identity: "1:1" };
    };
    const options = { isFull: false, onProgress: () => undefined, signal: undefined };
    const target = new FolderTarget(ports, makeScratch());
    const writer = new BackupWriter(target, { ...options, clock: ports.clock, id: "1", store: "shop" });
    return { copier: new Copier(ports, store, writer), store };
  }

  test.each([
    ["after the first is gone", { isGone: true, mtime: 1000 }],
    ["at another time", { isGone: false, mtime: 2000 }],
  ])("%s are two files of the backup", async (_, { isGone, mtime }) => {
    const { copier, store } = await makeCopier();
    writeFileSync(join(store, "a"), "one");
    utimesSync(join(store, "a"), 1000, 1000);
    await copier.copyNamed("a", { isFinal: true });
    if (isGone) unlinkSync(join(store, "a"));
    writeFileSync(join(store, "b"), "two");
    utimesSync(join(store, "b"), mtime, mtime);
    await copier.copyNamed("b", { isFinal: true });
    expect(copier.writer.entries.get("b")).toMatchObject({ kind: "file", sha256: sha256(Buffer.from("two")) });
  });

  test("are one file with two names if they are the same", async () => {
    const { copier, store } = await makeCopier();
    writeFileSync(join(store, "a"), "one");
    await copier.copyNamed("a", { isFinal: true });
    linkSync(join(store, "a"), join(store, "b"));
    await copier.copyNamed("b", { isFinal: true });
    expect(copier.writer.entries.get("b")).toEqual({ kind: "same", path: "b", of: "a" });
  });
});

describe("a backup of files", () => {
  test("reports a file that changes each time it is read, and none that came to rest", async () => {
    const site = await makeTree();
    let rests = 3;
    for (const name of ["busy", "rests"]) writeFileSync(join(site.live, "files", name), "a");
    const open = NodeDisk.prototype.open;
    vi.spyOn(NodeDisk.prototype, "open").mockImplementation(async function (this: NodeDisk, path, ...more) {
      const file = await open.call(this, path, ...more);
      const read = file.read.bind(file);
      const changes = path.endsWith("files/busy") || (path.endsWith("files/rests") && rests-- > 0);
      file.read = async (...range) => {
        if (changes) appendFileSync(path, "b");
        return await read(...range);
      };
      return file;
    });
    const { problems } = await backup(site.live, site.target);
    expect(problems).toEqual(["files/busy may be torn: it changed each time it was read."]);
  });

  test("does without a link that vanishes", async () => {
    const site = await makeTree();
    const link = join(site.live, "files/link");
    symlinkSync("plan.md", link);
    const readLink = NodeDisk.prototype.readLink;
    vi.spyOn(NodeDisk.prototype, "readLink").mockImplementation(async function (this: NodeDisk, path) {
      const target = await readLink.call(this, path);
      if (path === link) rmSync(link);
      return target;
    });
    expect(await backup(site.live, site.target)).toMatchObject({ problems: [] });
  });

  test("fails if its lock was lost, because programs may have changed the files", async () => {
    const site = await makeTree();
    const lost = holdfastError("LOCK_LOST", "Another process removed this holder.", {} as never);
    vi.spyOn(HoldHandle.prototype, "assertHeld").mockRejectedValue(lost);
    await expect(backup(site.live, site.target)).rejects.toBe(lost);
  });

  test("names a foreign directory among the changes, and ends", async () => {
    const site = await makeTree();
    const foreign = `ground/files/changes/${slotName(7_000_000)}`;
    expect(statSync(join(site.live, "ground/files/changes")).isDirectory()).toBe(true);
    mkdirSync(join(site.live, foreign, slotName(1)), { recursive: true });
    const { problems } = await backup(site.live, site.target);
    expect(problems).toEqual([expect.stringContaining(`${foreign}/${slotName(1)} is not in the backup`)]);
  });
});
