// Removals on a disk without room: they take what they need from a reserve, and puts do not.
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { openObjects } from "../../src/objects/index.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { fill, fillNames, mountSmallDisk } from "../durable/small-disk.ts";
import { makeRealSite } from "../sites/sites.ts";
import { codeOf, filesIn, objectsOn, smallInline, versionsOf } from "./object-sites.ts";

const makers = new Set<string | symbol>(["createFile", "mkdir", "link"]);
/** So many names have room when a file of the reserve goes. */
const namesPerFile = 6;

interface Room {
  /** How many names can still be made. */
  left: number;
}

/** A disk with room for some names. */
function limited(disk: Disk, room: Room): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      if (makers.has(name) && room.left <= 0)
        return async (path: string) => {
          throw diskError("ENOSPC", String(name), path);
        };
      if (makers.has(name)) room.left--;
      const value: unknown = Reflect.get(target, name, target);
      if (name === "rename")
        return async (from: string, to: string) => {
          const need = to.includes("/reserve/") ? namesPerFile - 1 : 0;
          if (room.left < need) throw diskError("ENOSPC", "rename", to);
          room.left -= need;
          await target.rename(from, to);
        };
      if (name === "unlink")
        return async (path: string) => {
          await target.unlink(path);
          room.left += /\/reserve\/\d/.test(path) ? namesPerFile : 1;
        };
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

async function openLimited(): Promise<{ store: DirectoryObjects; room: Room; disk: Disk; directory: string }> {
  const site = await objectsOn(makeRealSite);
  const ports = await site.openPorts();
  const room = { left: Infinity };
  const disk = limited(ports.disk, room);
  const directory = `${site.directory}/objects`;
  const store = new DirectoryObjects(await openStorage({ ...ports, disk }, directory), smallInline);
  onTestFinished(() => store.close());
  return { store, room, disk: ports.disk, directory };
}

it("a collection on a full disk removes the bodies of removed versions and refills the reserve", async () => {
  const { store, room, disk, directory } = await openLimited();
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  const { versionId } = await bucket.put("cat", "a body that has a file of its own");
  const [body] = (await filesIn(disk, directory)).filter((path) => path.includes("/bodies/"));
  await bucket.put("cat", "newer");
  await bucket.delete("cat", { versionId });
  // As a process leaves it that is killed after it has removed a version, before it erases the body.
  await disk.createFile(body!, Buffer.from("left"), { sync: false });
  room.left = 0;
  expect(await codeOf(bucket.put("dog", "no room"))).toBe("DISK_FULL");
  await store.collect();
  expect(await disk.canOpen(body!)).toBe(false);
  for (const name of await disk.list(`${directory}/reserve`)) await disk.unlink(`${directory}/reserve/${name}`);
  room.left = Infinity;
  await store.collect();
  expect(await disk.list(`${directory}/reserve`)).toHaveLength(48);
  expect(await versionsOf(bucket, "cat")).toEqual(["newer"]);
});

it("many concurrent deletions on a full disk all succeed, from a reserve that puts do not use", async () => {
  const { store, room } = await openLimited();
  const bucket = await store.createBucket("photos");
  const keys = Array.from({ length: 20 }, (_, index) => `cat ${index}`);
  for (const key of keys) await bucket.put(key, "a body that has a file of its own");
  room.left = 0;
  for (let tries = 0; tries < 20; tries++) expect(await codeOf(bucket.put("dog", "x"))).toBe("DISK_FULL");
  const deleted = await bucket.deleteMany(keys.map((key) => ({ key })));
  expect(deleted.filter((each) => "error" in each)).toEqual([]);
  expect((await bucket.list()).objects).toEqual([]);
});

it("once the reserve is used up, a deletion throws DISK_FULL and changes nothing", async () => {
  const { store, room } = await openLimited();
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  await bucket.put("cat", "one");
  room.left = 0;
  let markers = 0;
  const code = async (): Promise<string> => {
    for (; markers < 100; markers++) await bucket.delete("cat");
    return "none";
  };
  expect(await codeOf(code())).toBe("DISK_FULL");
  expect(markers).toBeGreaterThan(7);
  expect((await bucket.listVersions()).versions).toHaveLength(markers + 1);
});

const body = Buffer.alloc(100 * 1024, "a");

it.for([
  ["block", "size=4m", fill],
  ["inode", "nr_inodes=400", fillNames],
] as const)(
  "on a file system without a free %s all that removes something works",
  async ([, options, fillUp], context) => {
    const mount = mountSmallDisk(context, options);
    const directory = join(mount, "objects");
    const store = await openObjects(directory);
    onTestFinished(() => store.close());
    const bucket = await store.createBucket("films");
    const versioned = await store.createBucket("photos", { versioning: "enabled" });
    const expiring = await store.createBucket("old");
    await store.createBucket("empty");
    for (const key of ["small", "other"]) await bucket.put(key, "x");
    await bucket.put("large", body);
    await versioned.put("cat", body);
    await expiring.put("cat", body);
    await expiring.setConfig({ lifecycle: [{ expireAtMs: 1 }] });
    const upload = await bucket.createUpload("part");
    await upload.put(1, body);
    // Each meets a full disk: what the one before it has freed is taken.
    const onFullDisk = async (work: () => Promise<unknown>): Promise<void> => {
      fillUp(mount);
      expect(await codeOf(bucket.put("new", body))).toBe("DISK_FULL");
      await work();
    };
    await onFullDisk(() => versioned.delete("cat"));
    await onFullDisk(() => bucket.delete("small"));
    await onFullDisk(() => upload.abort());
    await onFullDisk(() => store.deleteBucket("empty"));
    await onFullDisk(async () => {
      const other = await openObjects(directory);
      await (await other.bucket("films")).delete("other");
      await other.close();
    });
    await onFullDisk(() => store.collect());
    await onFullDisk(() => bucket.delete("large"));
    expect(await versionsOf(versioned, "cat")).toEqual(["(marker)", body.toString()]);
    expect([...(await bucket.list()).objects, ...(await expiring.list()).objects]).toEqual([]);
    expect((await bucket.listUploads()).uploads).toEqual([]);
    expect((await store.listBuckets()).map(({ name }) => name)).toEqual(["films", "old", "photos"]);
  },
);
