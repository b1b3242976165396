// The index of keys on every kind of disk: it forgets keys that are gone, and none that is there.
import { describe, expect, it, onTestFinished } from "vitest";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { openStorage } from "../../../src/objects/bucket/open-objects.ts";
import { writeAnnouncement } from "../../../src/objects/listing/announcements.ts";
import type { KeyLife } from "../../../src/objects/listing/index-line.ts";
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import { sites, type Site } from "../../sites/sites.ts";
import { objectsOn } from "../object-sites.ts";

interface Indexed {
  readonly bucket: OpenBucket;
  readonly index: KeyIndex;
}

async function openIndex({ directory, openPorts }: Site): Promise<Indexed> {
  const { storage } = await openStorage(await openPorts(), `${directory}/objects`);
  onTestFinished(() => storage.ground.close());
  const buckets = new Buckets(storage);
  if ((await buckets.find("photos")) === undefined)
    await buckets.create("photos", { versioning: "off", objectLock: false });
  const bucket = await buckets.get("photos");
  return { bucket, index: await KeyIndex.open(bucket) };
}

async function keysOf(index: KeyIndex): Promise<string[]> {
  await using snapshot = await index.snapshot();
  const keys: string[] = [];
  for await (const key of snapshot.from("")) keys.push(key);
  return keys;
}

const lives = (count: number, prefix: string): KeyLife[] =>
  Array.from({ length: count }, (_, index) => ({
    key: `${prefix}${String(index).padStart(4, "0")}`,
    incarnation: "i",
  }));

const runsOf = async ({ bucket: { storage, layout } }: Indexed): Promise<string[]> =>
  (await storage.disk.list(layout.runs)).filter((name) => !name.endsWith(".open"));

describe.each(sites)("the index of keys on %s", (_name, make) => {
  it("keeps a key whose life has ended as long as another life is announced", async () => {
    const { bucket, index } = await openIndex(await make());
    const [first, second] = ["1", "2"].map((incarnation) => ({ key: "cat", incarnation })) as [KeyLife, KeyLife];
    await writeAnnouncement(bucket, { keys: [first, { key: "dog", incarnation: "3" }], ended: [] });
    await writeAnnouncement(bucket, { keys: [second], ended: [first] });
    await index.merge(1);
    expect(await keysOf(index)).toEqual(["cat", "dog"]);
    await writeAnnouncement(bucket, { keys: [], ended: [second] });
    for (let count = 0; count < 3; count++) await index.merge(1);
    await writeAnnouncement(bucket, { keys: lives(9, "zoo"), ended: [] });
    await index.merge(1);
    expect((await keysOf(index)).slice(0, 2)).toEqual(["dog", "zoo0000"]);
  });

  it("keeps a life that is about to end while its first slot exists, and forgets it afterwards", async () => {
    const site = await objectsOn(make);
    const photos = await (await site.open()).createBucket("photos");
    await photos.put("cat", "x");
    const { bucket, index } = await openIndex(site);
    const { chain, incarnation } = await bucket.useKey("cat", async (key) => {
      const head = await key.chain.findHead();
      return { chain: key.chain, incarnation: head!.incarnation };
    });
    await writeAnnouncement(bucket, { keys: [], ended: [{ key: "cat", incarnation }] });
    await index.merge(1);
    expect(await keysOf(index)).toEqual(["cat"]);
    await bucket.storage.disk.unlink(chain.names.slotPath(incarnation, 1));
    await index.merge(0);
    await writeAnnouncement(bucket, { keys: lives(9, "zoo"), ended: [] });
    await index.merge(1);
    expect(await keysOf(index)).not.toContain("cat");
  });

  it("keeps an end until it is merged with the announcement in an older run", async () => {
    const indexed = await openIndex(await make());
    const { bucket, index } = indexed;
    const old = lives(200, "old");
    await writeAnnouncement(bucket, { keys: old, ended: [] });
    await index.merge(1);
    await writeAnnouncement(bucket, { keys: [], ended: old.slice(0, 3) });
    await index.merge(1);
    expect(await runsOf(indexed)).toHaveLength(2);
    expect(await keysOf(index)).toHaveLength(200);
    await writeAnnouncement(bucket, { keys: lives(150, "new"), ended: [] });
    await index.merge(1);
    const keys = await keysOf(index);
    expect(keys).toHaveLength(347);
    expect(keys).toContain("old0003");
    expect(keys).not.toContain("old0002");
  });

  it("has few runs after many merges, and contains every key", async () => {
    const indexed = await openIndex(await make());
    const { bucket, index } = indexed;
    const all: string[] = [];
    for (let round = 0; round < 30; round++) {
      const some = lives(8, `${(round * 7) % 30}-`);
      await writeAnnouncement(bucket, { keys: some, ended: [] });
      await index.merge(1);
      all.push(...some.map(({ key }) => key));
    }
    expect(await keysOf(index)).toEqual(all.sort());
    // Those that are read, and what the last two merges have taken.
    expect((await runsOf(indexed)).length).toBeLessThanOrEqual(12);
    expect((await bucket.storage.disk.list(bucket.layout.entries)).length).toBeLessThanOrEqual(2);
  });

  it("drops only the files that a dead process wrote and did not name", async () => {
    const indexed = await openIndex(await make());
    const { bucket, index } = indexed;
    const { storage, layout } = bucket;
    await writeAnnouncement(bucket, { keys: lives(3, "k"), ended: [] });
    await index.merge(1);
    await storage.disk.createFile(`${layout.runs}/stray`, Buffer.from("torn"), { sync: false });
    await index.merge(0);
    expect(await storage.disk.list(layout.runs)).not.toContain("stray");
    expect(await keysOf(index)).toHaveLength(3);
  });

  it("is rebuilt from the keys by a repair", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    const photos = await store.createBucket("photos");
    for (const key of ["a", "é", "😀"]) await photos.put(key, "x");
    const indexed = await openIndex(site);
    const { storage, layout } = indexed.bucket;
    await indexed.index.merge(1);
    const [run] = await runsOf(indexed);
    await storage.disk.unlink(`${layout.runs}/${run!}`);
    expect((await store.verify()).ok).toBe(false);
    await store.verify({ repair: true });
    expect((await photos.list()).objects.map(({ key }) => key)).toEqual(["a", "é", "😀"]);
    expect((await store.verify()).problems).toEqual([]);
  });
});
