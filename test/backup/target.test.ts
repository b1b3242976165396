// Where backups are kept: what a process that slept, was killed, or meets a strange service does there.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { blobName, completeFolder, listIds } from "../../src/backup/manifest.ts";
import { FolderTarget } from "../../src/backup/target/folder-target.ts";
import { giveUp } from "../../src/backup/target/mark.ts";
import { openS3Target } from "../../src/backup/target/s3-target.ts";
import { BackupWriter } from "../../src/backup/write/backup-writer.ts";
import { backup, listBackups, pruneBackups, restore, verifyBackups } from "../../src/index.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeSite } from "./site.ts";

const id = "01m7rzbddf81tpywet71r22as18ef8q1gyfc";
const mark = `unfinished/${id}.json`;
const hour = 3_600;

/** A target in a folder, whose disk calls `onSync` after each sync of a directory. */
async function openTarget(onSync: (directory: string) => Promise<void> = async () => undefined) {
  const directory = makeScratch();
  const ports = await openNodePorts(directory);
  const disk: Disk = ports.disk;
  const sync = disk.syncDirectory.bind(disk);
  disk.syncDirectory = async (path) => {
    await sync(path);
    await onSync(path);
  };
  return { target: new FolderTarget({ disk, random: ports.random }, directory), directory };
}

function writerOf(target: FolderTarget): BackupWriter {
  const options = { isFull: false, onProgress: () => undefined, signal: undefined };
  return new BackupWriter(target, { ...options, clock: nodeClock, id, store: "shop" });
}

describe("a backup whose mark was removed", () => {
  test("fails at its next note and at its end, and never becomes complete", async () => {
    const { target } = await openTarget();
    const writer = writerOf(target);
    await writer.begin();
    await giveUp(target, mark);
    await expect(writer.note()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(writer.commit()).rejects.toMatchObject({ code: "CLOSED" });
    expect(await listIds(target, completeFolder)).toEqual([]);
    expect(await target.find(mark)).toBeUndefined();
  });

  test("fails although it writes the mark once more, in the moment of the removal", async () => {
    const { target } = await openTarget();
    const writer = writerOf(target);
    await writer.begin();
    const put = target.put.bind(target);
    const slow = vi.spyOn(target, "put").mockImplementation(async (name, bytes) => {
      if (name === mark) {
        slow.mockRestore();
        await giveUp(target, mark);
      }
      await put(name, bytes);
    });
    await expect(writer.commit()).rejects.toMatchObject({ code: "CLOSED" });
    expect(await listIds(target, completeFolder)).toEqual([]);
  });

  test("slept while a prune removed a blob that it counts on: it fails, and the next one is whole", async () => {
    const site = await makeSite();
    await site.store.files();
    const write = (letter: string): void =>
      writeFileSync(join(site.live, "files/large"), Buffer.alloc(2_000_000, letter));
    for (const letter of "AB") {
      write(letter);
      await backup(site.live, site.target);
    }
    write("A");
    const commit = BackupWriter.prototype.commit;
    const sleepy = vi.spyOn(BackupWriter.prototype, "commit").mockImplementation(async function (this: BackupWriter) {
      sleepy.mockRestore();
      await this.note();
      const before = Date.now() / 1000 - 2 * hour;
      utimesSync(join(site.target, "unfinished", `${this.id}.json`), before, before);
      await pruneBackups(site.target, { keep: 1 });
      return await commit.call(this);
    });
    await expect(backup(site.live, site.target)).rejects.toMatchObject({ code: "CLOSED" });
    expect(await listBackups(site.target)).toHaveLength(1);
    expect(await verifyBackups(site.target)).toMatchObject({ ok: true });
    await backup(site.live, site.target);
    expect(await verifyBackups(site.target)).toMatchObject({ ok: true });
    await restore(site.target, site.copy);
    expect(readFileSync(join(site.copy, "files/large"), "utf8").slice(0, 3)).toBe("AAA");
  });

  test("fails as a command, too", async () => {
    const site = await makeSite();
    await site.store.files();
    writeFileSync(join(site.live, "files/plan"), "paint");
    const onProgress = (): void => rmSync(join(site.target, "unfinished"), { recursive: true, force: true });
    await expect(backup(site.live, site.target, { onProgress })).rejects.toMatchObject({ code: "CLOSED" });
    expect(await listBackups(site.target)).toEqual([]);
    expect(await backup(site.live, site.target)).toMatchObject({ problems: [] });
  });
});

describe("a folder", () => {
  test("syncs what was put while it was syncing", async () => {
    const syncs: string[] = [];
    let isPut = false;
    const { target, directory } = await openTarget(async (path) => {
      if (!path.endsWith("/blobs/aa")) return;
      syncs.push(path);
      if (isPut) return;
      isPut = true;
      await target.put("blobs/aa/second", Buffer.from("2"));
    });
    await target.put("blobs/aa/first", Buffer.from("1"));
    await target.settle();
    expect(syncs).toEqual([`${directory}/blobs/aa`]);
    await target.settle();
    expect(syncs).toHaveLength(2);
  });

  test("waits for what another call is syncing, and syncs again what failed", async () => {
    const failure = new Error("the disk is away");
    let syncs = 0;
    const { target } = await openTarget(async (path) => {
      if (path.endsWith("/blobs/aa") && ++syncs === 1) throw failure;
    });
    await target.put("blobs/aa/first", Buffer.from("1"));
    const both = await Promise.allSettled([target.settle(), target.settle()]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(syncs).toBe(2);
  });

  test("makes a blob durable that a killed backup has put", async () => {
    const synced = new Set<string>();
    const { target, directory } = await openTarget(async (path) => void synced.add(path));
    const bytes = Buffer.from("put, and its name not synced");
    const blob = await writerOf(target).blob(bytes);
    const writer = writerOf(target);
    await writer.begin();
    await writer.findBlobs();
    synced.clear();
    await writer.blob(bytes);
    await writer.note();
    expect(synced).toContain(`${directory}/blobs/${blob.slice(0, 2)}`);
  });

  test("gives back a file larger than any blob", async () => {
    const { target, directory } = await openTarget();
    await target.put("blobs/aa/large", new Uint8Array());
    truncateSync(join(directory, "blobs/aa/large"), 65 * 1024 * 1024);
    expect((await target.find("blobs/aa/large"))?.length).toBe(65 * 1024 * 1024);
  });

  test("has an index in blobs of a few megabytes, also of huge files", async () => {
    const { target } = await openTarget();
    const writer = writerOf(target);
    await writer.begin();
    const pieces = Array.from({ length: 50_000 }, (_, at) => ["a".repeat(64), at, 1] as const);
    for (const path of "abcdefgh")
      writer.add({ kind: "file", path, size: pieces.length, sha256: "b".repeat(64), pieces });
    const { index } = await writer.commit();
    for (const blob of index) expect((await target.find(blobName(blob)))?.length).toBeLessThan(16 * 1024 * 1024);
  });

  test("with only the leftover of a killed first backup is as good as empty", async () => {
    const site = await makeSite();
    mkdirSync(site.target);
    writeFileSync(join(site.target, "tmp-4f2a"), "half of a record");
    expect(await backup(site.live, site.target)).toMatchObject({ problems: [] });
  });
});

describe("a prune", () => {
  test("that was killed blocks backups for an hour, and not for ever", async () => {
    const site = await makeSite();
    await backup(site.live, site.target);
    const left = join(site.target, "pruning", `${id}.json`);
    mkdirSync(join(site.target, "pruning"), { recursive: true });
    writeFileSync(left, "{}\n");
    await expect(backup(site.live, site.target)).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    utimesSync(left, Date.now() / 1000 - 2 * hour, Date.now() / 1000 - 2 * hour);
    expect(await backup(site.live, site.target)).toMatchObject({ problems: [] });
    expect(existsSync(left)).toBe(false);
    expect(await pruneBackups(site.target, { keep: 1 })).toMatchObject({ removed: [expect.any(String)] });
  });

  test.each<[string, (target: string) => void]>([
    ["whose mark is gone", (target) => rmSync(join(target, "pruning"), { recursive: true })],
    [
      "that slept for more than an hour",
      () => {
        const wallMs = nodeClock.wallMs.bind(nodeClock);
        vi.spyOn(nodeClock, "wallMs").mockImplementation(() => wallMs() + 2 * hour * 1000);
      },
    ],
  ])("%s stops before it removes anything more", async (_, disturb) => {
    onTestFinished(() => void vi.restoreAllMocks());
    const site = await makeSite();
    await site.store.files();
    const path = join(site.live, "files/plan");
    for (const text of ["paint", "brush"]) {
      writeFileSync(path, text);
      await backup(site.live, site.target);
    }
    const before = readdirSync(join(site.target, "blobs"), { recursive: true });
    const { signal } = new AbortController();
    signal.throwIfAborted = () => {
      signal.throwIfAborted = () => undefined;
      disturb(site.target);
    };
    await expect(pruneBackups(site.target, { keep: 1, signal })).rejects.toMatchObject({ code: "CLOSED" });
    expect(readdirSync(join(site.target, "blobs"), { recursive: true })).toEqual(before);
    vi.restoreAllMocks();
    expect(await verifyBackups(site.target)).toMatchObject({ ok: true });
    await pruneBackups(site.target, { keep: 1 });
    expect(readdirSync(join(site.target, "blobs"), { recursive: true }).length).toBeLessThan(before.length);
  });

  test("that ends while a backup begins has removed nothing that the backup counts on", async () => {
    const site = await makeSite();
    await backup(site.live, site.target);
    const list = vi.spyOn(FolderTarget.prototype, "list");
    onTestFinished(() => list.mockRestore());
    await backup(site.live, site.target);
    const folders = list.mock.calls.map(([folder]) => folder);
    expect(folders.indexOf("pruning/")).toBeLessThan(folders.indexOf("blobs/"));
  });
});

describe("a service", () => {
  test("that answers 404 to everything has stored nothing, and ends the backup", async () => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(request.method ?? "");
      request.resume();
      response.writeHead(404).end("nothing here");
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const s3 = { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, accessKeyId: "shop", secretAccessKey: "secret" }; // prettier-ignore
    const site = await makeSite();
    await expect(backup(site.live, "s3://backups/shop", { s3 })).rejects.toMatchObject({ code: "IO_ERROR" });
    expect(requests.length).toBeLessThan(5);
    const target = await openS3Target("s3://backups/shop", s3);
    await expect(target.put("blobs/aa/first", Buffer.from("1"))).rejects.toMatchObject({ code: "IO_ERROR" });
    await expect(target.isEmpty()).rejects.toMatchObject({ code: "IO_ERROR" });
    expect(await target.find("blobs/aa/first")).toBeUndefined();
  });
});
