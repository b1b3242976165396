// What is said about a version on every kind of disk: headers, metadata, tags, retention and legal
// hold; and copies.
import { describe, expect, it } from "vitest";
import { codeOf, bucketOn, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

const inOneDay = (): Date => new Date(Date.now() + 86_400_000);
const inTwoDays = (): Date => new Date(Date.now() + 2 * 86_400_000);

export function describeAttributes(name: string, make: StoreSiteMaker): void {
  describe(`attributes on ${name}`, () => {
    it("headers, metadata and checksums are returned as they were put", async () => {
      const bucket = await bucketOn(make);
      await bucket.put("cat", "123456789", {
        contentType: "text/plain",
        cacheControl: "no-store",
        metadata: { colour: "ginger" },
        checksum: { algorithm: "CRC32C" },
      });
      expect(await bucket.head("cat")).toMatchObject({
        contentType: "text/plain",
        headers: { contentType: "text/plain", cacheControl: "no-store" },
        metadata: { colour: "ginger" },
        checksum: { algorithm: "CRC32C", value: "4waSgw==" },
      });
    });

    it("changing the tags of a version adds no version", async () => {
      const bucket = await bucketOn(make);
      const { versionId } = await bucket.put("cat", "one", { tags: { a: "1" } });
      await bucket.put("cat", "two");
      await bucket.setTags("cat", { b: "2" }, { versionId });
      await bucket.setTags("cat", { c: "3" });
      expect(await bucket.tags("cat", { versionId })).toEqual({ b: "2" });
      expect(await bucket.tags("cat")).toEqual({ c: "3" });
      expect(await versionsOf(bucket, "cat")).toEqual(["two", "one"]);
      expect(await codeOf(bucket.setTags("dog", {}))).toBe("NO_SUCH_KEY");
    });

    it("a version under retention or a legal hold cannot be removed, but a newer one can be put", async () => {
      const store = await (await make()).open();
      const bucket = await store.createBucket("vault", { objectLock: true });
      const { versionId } = await bucket.put("cat", "one", { retention: { mode: "governance", until: inOneDay() } });
      await bucket.put("cat", "two");
      expect(await codeOf(bucket.delete("cat", { versionId }))).toBe("RETAINED");
      await bucket.setLegalHold("cat", true, { versionId });
      expect(await codeOf(bucket.delete("cat", { versionId, bypassGovernance: true }))).toBe("RETAINED");
      await bucket.setLegalHold("cat", false, { versionId });
      await bucket.delete("cat", { versionId, bypassGovernance: true });
      expect(await versionsOf(bucket, "cat")).toEqual(["two"]);
    });

    it("a retention can be extended, and weakened only by bypassing governance", async () => {
      const store = await (await make()).open();
      const bucket = await store.createBucket("vault", { objectLock: true });
      await bucket.setConfig({ defaultRetention: { mode: "governance", days: 1 } });
      const { versionId, retention } = await bucket.put("cat", "one");
      expect(retention?.mode).toBe("governance");
      expect(await codeOf(bucket.setRetention("cat", undefined))).toBe("RETAINED");
      await bucket.setRetention("cat", undefined, { bypassGovernance: true });
      await bucket.setRetention("cat", { mode: "compliance", until: inOneDay() });
      await bucket.setRetention("cat", { mode: "compliance", until: inTwoDays() });
      const weaker = { mode: "governance", until: inTwoDays() } as const;
      expect(await codeOf(bucket.setRetention("cat", weaker, { bypassGovernance: true }))).toBe("RETAINED");
      expect(await codeOf(bucket.delete("cat", { versionId, bypassGovernance: true }))).toBe("RETAINED");
    });

    it("a copy inherits or replaces the attributes of the copied version", async () => {
      const site = await make();
      const store = await site.open();
      const from = await store.createBucket("from", { versioning: "enabled" });
      const to = await store.createBucket("to-there");
      const { versionId, etag } = await from.put("cat", "one", { metadata: { colour: "ginger" }, tags: { a: "1" } });
      await from.put("cat", "two");
      const copy = await to.copy({ bucket: "from", key: "cat", versionId }, "copy");
      expect(copy).toMatchObject({ versionId: "null", etag, metadata: { colour: "ginger" } });
      expect(await to.tags("copy")).toEqual({ a: "1" });
      expect(await textOf(to, "copy")).toBe("one");
      await from.copy({ key: "cat" }, "cat", { attributes: "replace", metadata: { colour: "black" } });
      expect(await from.head("cat")).toMatchObject({ metadata: { colour: "black" } });
      const unequal = to.copy({ bucket: "from", key: "cat" }, "copy", { sourceIfMatch: etag });
      expect(await codeOf(unequal)).toBe("PRECONDITION_FAILED");
      await from.delete("cat");
      expect(await codeOf(to.copy({ bucket: "from", key: "cat" }, "copy"))).toBe("NO_SUCH_KEY");
    });
  });
}
