// Buckets on every kind of disk: made once, deleted when they are empty, made again.
import { describe, expect, it } from "vitest";
import { codeOf, bucketOn, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

export function describeBuckets(name: string, make: StoreSiteMaker): void {
  describe(`buckets on ${name}`, () => {
    it("exactly one of many processes creates a bucket, and all see it", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open(), await site.open()];
      const codes = await Promise.all(stores.map((store) => codeOf(store.createBucket("photos"))));
      expect(codes.sort()).toEqual(["BUCKET_EXISTS", "BUCKET_EXISTS", "nothing failed"]);
      await stores[1]!.createBucket("films", { versioning: "enabled" });
      for (const store of stores) {
        const buckets = await store.listBuckets();
        expect(buckets.map(({ name, versioning }) => [name, versioning])).toEqual([
          ["films", "enabled"],
          ["photos", "off"],
        ]);
      }
    });

    it("a bucket with an object, a version or a delete marker cannot be deleted", async () => {
      const store = await (await make()).open();
      const bucket = await store.createBucket("photos", { versioning: "enabled" });
      const { versionId } = await bucket.put("cat", "one");
      expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
      const marker = await bucket.delete("cat");
      await bucket.delete("cat", { versionId });
      expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
      await bucket.delete("cat", { versionId: marker.versionId });
      await store.deleteBucket("photos");
      expect(await store.listBuckets()).toEqual([]);
      expect(await codeOf(bucket.put("cat", "late"))).toBe("NO_SUCH_BUCKET");
      expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_BUCKET");
      expect(await codeOf(store.deleteBucket("photos"))).toBe("NO_SUCH_BUCKET");
    });

    it("a bucket that is created again contains nothing of its predecessor", async () => {
      const site = await make();
      const store = await site.open();
      const before = await store.createBucket("photos", { versioning: "enabled" });
      const { versionId } = await before.put("cat", "one");
      await before.delete("cat", { versionId });
      await store.deleteBucket("photos");
      const other = await site.open();
      const after = await other.createBucket("photos");
      await after.put("cat", "another");
      expect(await codeOf(before.get("cat", { versionId }))).toBe("NO_SUCH_VERSION");
      expect(await textOf(before, "cat")).toBe("another");
      expect(await after.versioning()).toBe("off");
    });

    it("a put that was acknowledged survives a concurrent deletion of its bucket", async () => {
      const site = await make();
      const store = await site.open();
      const other = await site.open();
      for (let round = 0; round < 4; round++) {
        const bucket = await store.createBucket(`round-${round}`, { versioning: "enabled" });
        const late = await other.bucket(`round-${round}`);
        const puts = ["a", "b", "c"].map((key) => codeOf(late.put(key, "one")));
        const deletion = codeOf(store.deleteBucket(`round-${round}`));
        const codes = await Promise.all(puts);
        const acknowledged = ["a", "b", "c"].filter((_key, index) => codes[index] === "nothing failed");
        if ((await deletion) === "nothing failed") expect(acknowledged).toEqual([]);
        else for (const key of acknowledged) expect(await versionsOf(bucket, key)).toEqual(["one"]);
      }
    });

    it("settings are stored as given, and invalid ones are refused", async () => {
      const bucket = await bucketOn(make, "off");
      await bucket.setConfig({
        tags: { owner: "ada" },
        documents: { cors: "<xml/>" },
        lifecycle: [{ expireDays: 30 }],
      });
      expect(await bucket.config()).toEqual({
        versioning: "off",
        objectLock: false,
        lifecycle: [{ expireDays: 30 }],
        tags: { owner: "ada" },
        documents: { cors: "<xml/>" },
      });
      await expect(bucket.setConfig({ objectLock: true })).rejects.toThrow(TypeError);
      await expect(bucket.setConfig({ versoning: "enabled" } as never)).rejects.toThrow(/versoning/);
      await expect(bucket.setVersioning("off" as never)).rejects.toThrow(TypeError);
    });
  });
}
