// Collection on every kind of disk: what is not needed goes, and nothing else.
import { describe, expect, it } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { Buckets } from "../../src/objects/bucket/buckets.ts";
import { Collector } from "../../src/objects/collect/collect.ts";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import type { ObjectsStorage } from "../../src/objects/bucket/objects-storage.ts";
import type { OpenBucket } from "../../src/objects/bucket/open-bucket.ts";
import { versionsOf as listVersions } from "../../src/objects/listing/list-page.ts";
import { deleteObject } from "../../src/objects/version/delete-version.ts";
import { forgetBlocks } from "../../src/objects/version/forget-blocks.ts";
import { putBody } from "../../src/objects/version/put-version.ts";
import { openObject } from "../../src/objects/version/read-version.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesIn, objectsOn, smallInline, textOf, versionsOf, type ObjectSite } from "./object-sites.ts";

const long = (text: string): string => `${text}, in a body that has a file of its own`;

/** Collects as a process whose clock is ahead by an hour: keys without versions have rested. */
async function collectLater(site: ObjectSite): Promise<number> {
  const ports = await site.openPorts();
  const clock: Ports["clock"] = Object.assign(Object.create(ports.clock) as Ports["clock"], {
    wallMs: () => ports.clock.wallMs() + 3_600_000,
    monotonicMs: () => ports.clock.monotonicMs(),
    sleep: (ms: number, options?: object) => ports.clock.sleep(ms, options),
    alarm: (ms: number, ring: () => void) => ports.clock.alarm(ms, ring),
  });
  const { storage, ownsGround } = await openStorage({ ...ports, clock }, `${site.directory}/objects`);
  try {
    return (await new Collector(storage, new Buckets(storage)).collect()).objects;
  } finally {
    if (ownsGround) await storage.ground.close();
  }
}

/** A process to which a block has four slots. */
async function openSmallBlocks(site: ObjectSite): Promise<{ storage: ObjectsStorage; buckets: Buckets }> {
  const { storage } = await openStorage(await site.openPorts(), `${site.directory}/objects`);
  Object.assign(storage, { slotsPerBlock: 4 });
  return { storage, buckets: new Buckets(storage) };
}

async function putLarge(bucket: OpenBucket, key: string, text: string): Promise<void> {
  const request = { key, facts: { headers: {}, metadata: {}, tags: {} }, preconditions: {} };
  await putBody(
    async () => bucket,
    request,
    text,
    { inlineMax: 0 },
    async () => undefined,
  );
}

async function makeBucket(site: ObjectSite, versioning: "enabled" | "off"): Promise<Bucket> {
  return await (await site.open(smallInline)).createBucket("photos", { versioning });
}

describe.each(sites)("a collection on %s", (_name, make) => {
  it("removes keys without versions, and keeps all others", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "off");
    for (const key of ["cat", "dog", "cow"]) await bucket.put(key, long(key));
    await bucket.put("cat", long("newer"));
    await bucket.delete("dog");
    await collectLater(site);
    expect(await textOf(bucket, "cat")).toBe(long("newer"));
    expect(await textOf(bucket, "cow")).toBe(long("cow"));
    expect(await codeOf(bucket.get("dog"))).toBe("NO_SUCH_KEY");
    const { disk } = await site.openPorts();
    const files = await filesIn(disk, `${site.directory}/objects`);
    expect(files.filter((path) => path.includes("dog~"))).toEqual([]);
    expect(files.filter((path) => path.includes("/bodies/"))).toHaveLength(2);
    await bucket.put("dog", "again");
    expect(await textOf(bucket, "dog")).toBe("again");
  });

  it("removes the bodies of a dead process that no version names, and no others", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const gone = await site.open(smallInline);
    await (await gone.bucket("photos")).put("cat", long("kept"));
    const { disk } = await site.openPorts();
    const [body] = (await filesIn(disk, `${site.directory}/objects`)).filter((each) => each.includes("/bodies/"));
    const orphan = `${body!.slice(0, body!.lastIndexOf("/"))}/orphan`;
    await disk.createFile(orphan, Buffer.from("left by a process that died"), { sync: true });
    await collectLater(site);
    expect(await disk.findStat(orphan)).toBeDefined();
    await gone.close();
    await collectLater(site);
    // Memory has one process, which goes on.
    if (_name !== "the memory disk") expect(await disk.findStat(orphan)).toBeUndefined();
    expect(await versionsOf(bucket, "cat")).toEqual([long("kept")]);
  });

  it("may be called by all processes at once", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const stores = [await site.open(), await site.open(), await site.open()];
    const puts = ["a", "b", "c"].map((text) => bucket.put("cat", long(text)));
    await Promise.all(stores.map((store) => store.collect()));
    await Promise.all(puts);
    expect((await versionsOf(bucket, "cat")).sort()).toEqual(["a", "b", "c"].map(long));
  });

  it("keeps the bodies of living versions in a key with a dropped block", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const { storage, buckets } = await openSmallBlocks(site);
    const open = await buckets.get(bucket.name);
    for (let count = 1; count <= 10; count++) await putLarge(open, "cat", long(`version ${count}`));
    // The versions of block 1 go, and then the block does.
    for (const { versionId } of (await listVersions(open, "cat")).slice(2, 6))
      await deleteObject(open, "cat", { versionId }, async () => undefined);
    expect(await open.useKey("cat", (key) => forgetBlocks(open, key, { restMs: -1 }))).toBe(1);
    await storage.ground.close();
    const later = await openSmallBlocks(site);
    await new Collector(later.storage, later.buckets).collect();
    const found = await later.buckets.get(bucket.name);
    const texts: string[] = [];
    for (const { versionId } of await listVersions(found, "cat")) {
      await using object = await openObject(found, "cat", { versionId });
      texts.push(await object.text());
    }
    await later.storage.ground.close();
    expect(texts).toEqual([10, 9, 4, 3, 2, 1].map((count) => long(`version ${count}`)));
  });

  it("continues with other keys and buckets if a key is damaged, and throws at the end", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const store = await site.open(smallInline);
    const second = await store.createBucket("second", { versioning: "enabled" });
    await second.setConfig({ lifecycle: [{ noncurrent: { keep: 1 } }] });
    for (const text of ["one", "two", "three", "four"]) await second.put("q", text);
    for (const text of ["one", "two", "three"]) await bucket.put("cat", long(text));
    const { disk } = await site.openPorts();
    const files = await filesIn(disk, `${site.directory}/objects`);
    const slot = files.find((path) => path.includes("cat~") && path.endsWith("-0000000002"))!;
    await disk.unlink(slot);
    const orphan = `${files.find((path) => path.includes("/bodies/"))!}x`;
    await disk.createFile(orphan, Buffer.from("perhaps one of the damaged key"), { sync: true });
    const error: unknown = await (await site.open()).collect().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "CORRUPT", path: slot });
    expect(await versionsOf(second, "q")).toEqual(["four", "three"]);
    expect(await disk.findStat(orphan)).toBeDefined();
  });

  it("keeps a key that lost its first slot, and the bodies that it names", async () => {
    const site = await objectsOn(make);
    const gone = await site.open(smallInline);
    const bucket = await gone.createBucket("photos", { versioning: "enabled" });
    for (const text of ["one", "two"]) await bucket.put("cat", long(text));
    await gone.close();
    const { disk } = await site.openPorts();
    const files = await filesIn(disk, `${site.directory}/objects`);
    const first = files.find((path) => path.includes("cat~") && path.endsWith("-0000000001"))!;
    await disk.rename(first, `${site.directory}/away`);
    await collectLater(site);
    await disk.rename(`${site.directory}/away`, first);
    const restored = await (await site.open()).bucket("photos");
    expect(await versionsOf(restored, "cat")).toEqual([long("two"), long("one")]);
  });
});
