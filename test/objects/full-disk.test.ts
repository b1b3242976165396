// Collection on a disk without room: what needs no new file goes.
import { expect, it, onTestFinished } from "vitest";
import { openPlace } from "../../src/objects/bucket/open-objects.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { makeRealSite } from "../sites/sites.ts";
import { codeOf, filesIn, objectsOn, smallInline, versionsOf } from "./object-sites.ts";

const makers = new Set<string | symbol>(["createFile", "mkdir", "link"]);

/** A disk on which nothing new has room while `isFull` says so. */
function limited(disk: Disk, isFull: () => boolean): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      if (makers.has(name) && isFull())
        return async (path: string) => {
          throw diskError("ENOSPC", String(name), path);
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

it("a collection on a full disk removes the bodies of removed versions, and says that the disk is full", async () => {
  const site = await objectsOn(makeRealSite);
  const ports = await site.openPorts();
  let isFull = false;
  const disk = limited(ports.disk, () => isFull);
  const store = new DirectoryObjects(await openPlace({ ...ports, disk }, `${site.directory}/objects`), smallInline);
  onTestFinished(() => store.close());
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  const { versionId } = await bucket.put("cat", "a body that has a file of its own");
  const [body] = (await filesIn(ports.disk, site.directory)).filter((path) => path.includes("/bodies/"));
  await bucket.put("cat", "newer");
  await bucket.delete("cat", { versionId });
  // As a process leaves it that is killed after it has removed a version, before it erases the body.
  await ports.disk.createFile(body!, Buffer.from("left"), { sync: false });
  isFull = true;
  expect(await codeOf(bucket.put("dog", "no room"))).toBe("DISK_FULL");
  expect(await codeOf(store.collect())).toBe("DISK_FULL");
  expect(await ports.disk.canOpen(body!)).toBe(false);
  isFull = false;
  await store.collect();
  expect(await versionsOf(bucket, "cat")).toEqual(["newer"]);
});
