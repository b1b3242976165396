// When the settings of a bucket hold: for a write when its body is complete, for a look at one key as
// far as they matter at all.
import { describe, expect, it, onTestFinished } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { makeRealSite, sites } from "../sites/sites.ts";
import { codeOf, objectsOn, smallInline, textOf, versionsOf } from "./object-sites.ts";

/** A body that ends when it is told to. */
function slowBody(text: string): { readonly body: AsyncIterable<Uint8Array>; readonly end: () => void } {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
    await ended;
  }
  return { body: body(), end };
}

describe.each(sites)("the settings of a bucket on %s", (_name, make) => {
  it.each(["small", "large, in a file of its own"])(
    "a put that ends after versioning was enabled adds a version, and the previous object stays: %s",
    async (text) => {
      const site = await objectsOn(make);
      const bucket = await (await site.open(smallInline)).createBucket("photos");
      await bucket.put("cat", "before");
      const { body, end } = slowBody(text);
      const putting = bucket.put("cat", body);
      await (await (await site.open()).bucket("photos")).setVersioning("enabled");
      end();
      expect((await putting).versionId).not.toBe("null");
      expect(await versionsOf(bucket, "cat")).toEqual([text, "before"]);
    },
  );

  it("a process that cached a bucket finds its replacement, and does not find a deleted one", async () => {
    const site = await objectsOn(make);
    const [one, other] = [await site.open(smallInline), await site.open(smallInline)];
    const known = await one.createBucket("photos");
    await known.put("cat", "first life");
    const idle = await (await site.open()).bucket("photos");
    for (const bucket of [known, idle]) expect(await textOf(bucket, "cat")).toBe("first life");
    const theirs = await other.bucket("photos");
    await theirs.delete("cat");
    await other.deleteBucket("photos");
    expect(await codeOf(known.get("cat"))).toBe("NO_SUCH_BUCKET");
    expect(await codeOf(known.put("cat", "into nothing"))).toBe("NO_SUCH_BUCKET");
    await (await other.createBucket("photos")).put("cat", "second life");
    for (const bucket of [known, idle]) expect(await textOf(bucket, "cat")).toBe("second life");
    expect(await codeOf(known.get("dog"))).toBe("NO_SUCH_KEY");
    for (const text of ["small", "large, in a file of its own"]) {
      await known.put("cow", text);
      expect(await textOf(theirs, "cow")).toBe(text);
    }
  });

  it("a put with a retention or a hold is refused in a bucket without object lock", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open(smallInline)).createBucket("photos");
    const retention = { mode: "compliance" as const, until: new Date(Date.now() + 1000) };
    for (const text of ["small", "large, in a file of its own"]) {
      await expect(bucket.put("cat", text, { retention })).rejects.toThrow(/objectLock/);
      await expect(bucket.put("cat", text, { legalHold: true })).rejects.toThrow(TypeError);
    }
    expect(await codeOf(bucket.head("cat"))).toBe("NO_SUCH_KEY");
  });

  it("deleteMany applies the condition of each item", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open()).createBucket("photos");
    const [cat, dog] = [await bucket.put("cat", "one"), await bucket.put("dog", "two")];
    const [first, second] = await bucket.deleteMany([
      { key: "cat", ifMatch: dog.etag },
      { key: "dog", ifMatch: dog.etag },
    ]);
    expect(first).toMatchObject({ key: "cat", error: { code: "PRECONDITION_FAILED" } });
    expect(second).toEqual({ key: "dog", deleteMarker: false });
    expect((await bucket.head("cat")).etag).toBe(cat.etag);
    await expect(bucket.deleteMany([{ key: "cat", etag: "x" } as never])).rejects.toThrow(/etag/);
  });
});

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
