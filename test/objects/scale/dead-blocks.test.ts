// Blocks of a key in which no version lives, on every kind of disk: they go, and nothing comes back.
import { describe, expect, it } from "vitest";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { openStorage } from "../../../src/objects/bucket/open-objects.ts";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import { DirectoryObjects } from "../../../src/objects/objects.ts";
import { forgetBlocks } from "../../../src/objects/version/forget-blocks.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { sites, type Site } from "../../sites/sites.ts";
import { codeOf, textOf, versionsOf } from "../object-sites.ts";

const slotsPerBlock = 4;

interface Opened {
  readonly bucket: Bucket;
  readonly forget: () => Promise<number>;
  readonly ports: Ports;
  readonly directory: string;
}

/** Another process, with blocks of four. */
async function open(site: Site): Promise<Opened> {
  const ports = await site.openPorts();
  const opened = await openStorage(ports, `${site.directory}/objects`);
  const storage = Object.assign(opened.storage, { slotsPerBlock });
  const store = new DirectoryObjects({ ...opened, storage });
  const bucket = (await store.findBucket("photos")) ?? (await store.createBucket("photos", { versioning: "enabled" }));
  const inner = await new Buckets(storage).get("photos");
  const forget = (): Promise<number> => inner.useKey("hot", (key) => forgetBlocks(inner, key, { restMs: -1 }));
  return { bucket, forget, ports, directory: inner.layout.key("hot") };
}

/** The names in the blocks from 1 on. */
async function slotsIn({ ports: { disk }, directory }: Opened): Promise<string[]> {
  const found: string[] = [];
  for (const name of (await disk.list(directory)).filter((each) => /-b\d+$/.test(each)))
    found.push(...(await disk.list(`${directory}/${name}`)).filter((each) => each !== "dropped"));
  return found;
}

describe.each(sites)("dead blocks on %s", (_name, make) => {
  it("are removed, and every living version stays, even for a process that read the key before", async () => {
    const site = await make();
    const ada = await open(site);
    const bob = await open(site);
    const ids: string[] = [];
    for (let count = 0; count < 18; count++) ids.push((await ada.bucket.put("hot", `v${count}`)).versionId);
    await bob.bucket.setTags("hot", { kept: "yes" }, { versionId: ids[9]! });
    const kept = [9, 16, 17];
    for (const [index, versionId] of ids.entries())
      if (!kept.includes(index)) await ada.bucket.delete("hot", { versionId });
    const before = await slotsIn(ada);
    expect(await ada.forget()).toBeGreaterThan(1);
    expect((await slotsIn(ada)).length).toBeLessThan(before.length);
    for (const { bucket } of [ada, bob, await open(site)]) {
      expect(await versionsOf(bucket, "hot")).toEqual(["v17", "v16", "v9"]);
      expect(await bucket.tags("hot", { versionId: ids[9]! })).toEqual({ kept: "yes" });
      expect(await codeOf(bucket.get("hot", { versionId: ids[0]! }))).toBe("NO_SUCH_VERSION");
      expect(await codeOf(bucket.get("hot", { versionId: ids[5]! }))).toBe("NO_SUCH_VERSION");
    }
    await bob.bucket.put("hot", "newest");
    expect(await versionsOf((await open(site)).bucket, "hot")).toEqual(["newest", "v17", "v16", "v9"]);
  });

  it("leave no version alive when the whole key is removed", async () => {
    const site = await make();
    const ada = await open(site);
    for (let round = 0; round < 2; round++) {
      const ids: string[] = [];
      for (let count = 0; count < 5; count++) ids.push((await ada.bucket.put("hot", `${round}-${count}`)).versionId);
      ids.push((await ada.bucket.delete("hot")).versionId!);
      for (const versionId of ids) await ada.bucket.delete("hot", { versionId });
      await ada.forget();
      expect(await versionsOf((await open(site)).bucket, "hot")).toEqual([]);
    }
    await ada.bucket.put("hot", "again");
    expect(await textOf((await open(site)).bucket, "hot")).toBe("again");
  });

  it("cannot be extended by a process that remembers an old end of the key", async () => {
    const site = await make();
    const [ada, bob] = [await open(site), await open(site)];
    const ids: string[] = [];
    const put = async (bucket: Bucket, text: string): Promise<void> => {
      ids.push((await bucket.put("hot", text)).versionId);
    };
    for (let count = 0; count < 6; count++) await put(bob.bucket, `b${count}`);
    for (let count = 0; count < 9; count++) await put(ada.bucket, `a${count}`);
    for (const versionId of ids.slice(0, -1)) await ada.bucket.delete("hot", { versionId });
    expect(await ada.forget()).toBeGreaterThan(0);
    await put(bob.bucket, "late");
    expect(await textOf(ada.bucket, "hot")).toBe("late");
    expect(await versionsOf((await open(site)).bucket, "hot")).toEqual(["late", "a8"]);
  });
});
