// Versions on every kind of disk: what is kept, what is current, and what a delete leaves.
import { describe, expect, it } from "vitest";
import { codeOf, bucketOn, smallInline, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

export function describeVersions(name: string, make: StoreSiteMaker): void {
  describe(`versions on ${name}`, () => {
    it("five concurrent puts are five versions with five ids", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
      const other = await (await site.open()).bucket("photos");
      const puts = await Promise.all(
        ["a", "b", "c", "d", "e"].map((text, index) => (index % 2 === 0 ? bucket : other).put("cat", text)),
      );
      expect(new Set(puts.map(({ versionId }) => versionId)).size).toBe(5);
      expect((await versionsOf(other, "cat")).sort()).toEqual(["a", "b", "c", "d", "e"]);
      for (const { versionId, etag } of puts) expect((await other.head("cat", { versionId })).etag).toBe(etag);
    });

    it("another process gets a put as soon as it is acknowledged", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      const other = await (await site.open()).bucket("photos");
      for (const text of ["one", "two", "three"]) {
        const { etag } = await bucket.put("cat", text);
        expect(await textOf(other, "cat")).toBe(text);
        expect(await other.head("cat")).toMatchObject({ etag, versionId: "null", size: text.length, isLatest: true });
      }
      expect(await versionsOf(other, "cat")).toEqual(["three"]);
    });

    it("a delete adds a marker, and removing the marker restores the object", async () => {
      const bucket = await bucketOn(make);
      await bucket.put("cat", "one");
      const { versionId, deleteMarker } = await bucket.delete("cat");
      expect(deleteMarker).toBe(true);
      expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
      await expect(bucket.get("cat")).rejects.toMatchObject({ deleteMarker: versionId });
      expect((await bucket.list()).objects).toEqual([]);
      expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "one"]);
      await bucket.delete("cat");
      await bucket.delete("cat", { versionId });
      expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "one"]);
      const [marker] = (await bucket.listVersions()).versions;
      expect(await bucket.delete("cat", { versionId: marker?.versionId })).toMatchObject({ deleteMarker: true });
      expect(await textOf(bucket, "cat")).toBe("one");
    });

    it("removing the current version makes the previous one current, and erases the bytes", async () => {
      const bucket = await bucketOn(make, "enabled", smallInline);
      const ids: string[] = [];
      for (const text of ["one", "two", "a body with a file of its own", "four"])
        ids.push((await bucket.put("cat", text)).versionId);
      await bucket.delete("cat", { versionId: ids[3] });
      expect(await textOf(bucket, "cat")).toBe("a body with a file of its own");
      await bucket.delete("cat", { versionId: ids[2] });
      expect(await textOf(bucket, "cat")).toBe("two");
      expect(await codeOf(bucket.get("cat", { versionId: ids[2] }))).toBe("NO_SUCH_VERSION");
      await bucket.delete("cat", { versionId: ids[2] });
      await bucket.delete("cat", { versionId: ids[0] });
      expect(await versionsOf(bucket, "cat")).toEqual(["two"]);
      await bucket.delete("cat", { versionId: ids[1] });
      expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
      expect((await bucket.put("cat", "again")).isLatest).toBe(true);
      expect(await versionsOf(bucket, "cat")).toEqual(["again"]);
    });

    it("an object from before versioning becomes the null version and stays", async () => {
      const bucket = await bucketOn(make, "off");
      expect((await bucket.put("cat", "old")).versionId).toBe("null");
      await bucket.setVersioning("enabled");
      const { versionId } = await bucket.put("cat", "new");
      expect(versionId).not.toBe("null");
      expect(await textOf(bucket, "cat", "null")).toBe("old");
      await bucket.setVersioning("suspended");
      expect((await bucket.put("cat", "newest")).versionId).toBe("null");
      expect(await versionsOf(bucket, "cat")).toEqual(["newest", "new"]);
      expect(await bucket.delete("cat")).toMatchObject({ versionId: "null", deleteMarker: true });
      expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "new"]);
      await expect(bucket.setConfig({ versioning: "off" })).rejects.toThrow(TypeError);
    });

    it("a delete without versioning removes the object, and succeeds if there is none", async () => {
      const bucket = await bucketOn(make, "off");
      await bucket.put("cat", "one");
      expect(await bucket.delete("cat")).toEqual({ key: "cat", deleteMarker: false });
      expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
      expect(await bucket.delete("cat")).toEqual({ key: "cat", deleteMarker: false });
      expect(await bucket.delete("dog")).toEqual({ key: "dog", deleteMarker: false });
      expect((await bucket.listVersions()).versions).toEqual([]);
    });

    it("a delete without versioning restores no older object, even for a later process", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      for (const text of ["one", "two", "three"]) await bucket.put("cat", text);
      await bucket.delete("cat");
      const later = await (await site.open()).bucket("photos");
      expect(await codeOf(later.get("cat"))).toBe("NO_SUCH_KEY");
      expect(await versionsOf(later, "cat")).toEqual([]);
      await bucket.put("cat", "four");
      expect(await versionsOf(await (await site.open()).bucket("photos"), "cat")).toEqual(["four"]);
    });

    it("an open object can be read whole while it is replaced and deleted", async () => {
      const bucket = await bucketOn(make, "off", smallInline);
      const text = "a body with a file of its own, read in two parts";
      await bucket.put("cat", text);
      await using object = await bucket.get("cat");
      await bucket.put("cat", "short");
      await bucket.delete("cat");
      expect(await object.text()).toBe(text);
    });

    it("a version id of another key, or an invalid one, names no version", async () => {
      const bucket = await bucketOn(make);
      const { versionId } = await bucket.put("cat", "one");
      await bucket.put("dog", "one");
      expect(await codeOf(bucket.get("dog", { versionId }))).toBe("NO_SUCH_VERSION");
      expect(await codeOf(bucket.head("cat", { versionId: "nonsense" }))).toBe("NO_SUCH_VERSION");
      expect(await codeOf(bucket.get("cow", { versionId }))).toBe("NO_SUCH_VERSION");
    });
  });
}
