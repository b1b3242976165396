// The settings of a bucket on every kind of disk, and what reading them costs.
import { expect, it, onTestFinished } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { makeRealSite, sites } from "../sites/sites.ts";
import { describeSettings } from "./contract/settings.ts";
import { objectsOn, textOf } from "./object-sites.ts";

for (const [name, make] of sites) describeSettings(name, () => objectsOn(make));

/** Counts the calls of a disk that name something in the configuration of a bucket. */
function counting(disk: Disk, counts: { config: number; all: number }): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        counts.all++;
        if (args.some((each) => typeof each === "string" && each.includes("/config"))) counts.config++;
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

it("a get does not read the configuration of a cached bucket, and a put of a small body reads it once", async () => {
  const site = await makeRealSite();
  const ports = await site.openPorts();
  const counts = { config: 0, all: 0 };
  const opened = await openStorage({ ...ports, disk: counting(ports.disk, counts) }, `${site.directory}/objects`);
  const store = new DirectoryObjects(opened);
  onTestFinished(() => store.close());
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  await bucket.put("cat", "one");
  const costOf = async (work: () => Promise<unknown>): Promise<number> => {
    counts.config = 0;
    await work();
    return counts.config;
  };
  expect(await costOf(() => textOf(bucket, "cat"))).toBe(0);
  expect(await costOf(() => bucket.head("cat"))).toBe(0);
  // One question for a newer state, one whether the known one still counts.
  expect(await costOf(() => bucket.put("cat", "two"))).toBe(2);
  expect(await costOf(() => bucket.put("cat", "x".repeat(100_000)))).toBe(4);
});
