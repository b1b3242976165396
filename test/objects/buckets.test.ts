// Buckets on every kind of disk: made once, deleted when they are empty, made again.
import { describe, expect, it } from "vitest";
import { sites } from "../sites/sites.ts";
import { codeOf, objectsOn, textOf } from "./object-sites.ts";

describe.each(sites)("buckets on %s", (_name, make) => {
  it("a bucket whose deleter died after removing the keys is gone, and can be created again", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    const bucket = await store.createBucket("photos");
    const { disk } = await site.openPorts();
    const directory = `${site.directory}/objects/buckets/photos`;
    const [incarnation] = (await disk.list(directory)).filter((name) => name !== "config");
    await disk.rmdir(`${directory}/${incarnation}/keys`);
    expect(await codeOf(bucket.put("cat", "one"))).toBe("NO_SUCH_BUCKET");
    expect(await store.findBucket("photos")).toBeUndefined();
    await store.createBucket("photos");
    await bucket.put("cat", "two");
    expect(await textOf(bucket, "cat")).toBe("two");
  });
});
