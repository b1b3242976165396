// Versioning as users of S3 know it: each test is a scenario that such a store is accepted by.
import { describe, expect, it } from "vitest";
import { codeOf, textOf, versionsOf } from "../object-sites.ts";
import { bucketOf, idsOf, memoryStore } from "./memory-bucket.ts";

describe("the versioning of a bucket", () => {
  it("is off until it is set", async () => {
    const bucket = await bucketOf("off");
    expect(await bucket.versioning()).toBe("off");
    for (const state of ["enabled", "suspended", "enabled"] as const) {
      await bucket.setVersioning(state);
      expect(await bucket.versioning()).toBe(state);
    }
  });

  it("applies to the next put", async () => {
    const bucket = await bucketOf("off");
    expect((await bucket.put("cat", "1")).versionId).toBe("null");
    await bucket.setVersioning("enabled");
    expect((await bucket.put("cat", "2")).versionId).not.toBe("null");
    await bucket.setVersioning("suspended");
    expect((await bucket.put("cat", "3")).versionId).toBe("null");
    await bucket.setVersioning("enabled");
    expect((await bucket.put("cat", "4")).versionId).not.toBe("null");
    expect(await versionsOf(bucket, "cat")).toEqual(["4", "3", "2"]);
  });

  it("can never be turned off again, nor have an unknown value", async () => {
    const bucket = await bucketOf("enabled");
    await expect(bucket.setVersioning("off" as never)).rejects.toThrow(TypeError);
    await expect(bucket.setConfig({ versioning: "off" })).rejects.toThrow(TypeError);
    await expect(bucket.setVersioning("Enabled" as never)).rejects.toThrow(TypeError);
    expect(await bucket.versioning()).toBe("enabled");
  });

  it("of a missing bucket can be neither read nor set", async () => {
    const store = await memoryStore();
    const bucket = await store.createBucket("photos");
    await store.deleteBucket("photos");
    expect(await codeOf(bucket.versioning())).toBe("NO_SUCH_BUCKET");
    expect(await codeOf(bucket.setVersioning("enabled"))).toBe("NO_SUCH_BUCKET");
    expect(await codeOf(bucket.put("cat", "x"))).toBe("NO_SUCH_BUCKET");
    expect(await codeOf(bucket.delete("cat"))).toBe("NO_SUCH_BUCKET");
  });

  it("keeps existing versions when it is suspended", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    await bucket.put("cat", "2");
    await bucket.setVersioning("suspended");
    expect(await versionsOf(bucket, "cat")).toEqual(["2", "1"]);
  });
});

describe("a put", () => {
  it("with versioning enabled adds a version with its own id, even the first one", async () => {
    const bucket = await bucketOf("enabled");
    const puts = [await bucket.put("cat", "1"), await bucket.put("cat", "2"), await bucket.put("cat", "2")];
    const ids = puts.map(({ versionId }) => versionId);
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(id).toMatch(/^[0-9a-z]{1,1024}$/);
    expect(await idsOf(bucket, "cat")).toEqual([...ids].reverse());
  });

  it("with versioning off or suspended has the id null and replaces only the null version", async () => {
    const bucket = await bucketOf("off");
    for (const text of ["1", "2"]) expect((await bucket.put("cat", text)).versionId).toBe("null");
    expect(await versionsOf(bucket, "cat")).toEqual(["2"]);
    await bucket.setVersioning("enabled");
    await bucket.put("cat", "3");
    await bucket.setVersioning("suspended");
    for (const text of ["4", "5"]) expect((await bucket.put("cat", text)).versionId).toBe("null");
    expect(await versionsOf(bucket, "cat")).toEqual(["5", "3"]);
  });

  it("loses nothing to concurrent puts, and two versions never share an id", async () => {
    const bucket = await bucketOf("enabled");
    const texts = Array.from({ length: 20 }, (_, index) => `put ${index}`);
    const puts = await Promise.all(texts.map((text) => bucket.put("cat", text)));
    expect(new Set(puts.map(({ versionId }) => versionId)).size).toBe(20);
    expect((await versionsOf(bucket, "cat")).sort()).toEqual([...texts].sort());
  });

  it("returns the same ETag for the same bytes, and another one for other bytes", async () => {
    const bucket = await bucketOf("enabled");
    const [one, same, other] = [await bucket.put("a", "x"), await bucket.put("b", "x"), await bucket.put("a", "y")];
    expect(same.etag).toBe(one.etag);
    expect(other.etag).not.toBe(one.etag);
  });
});

describe("a get and a head", () => {
  it("return the current version, or the version with the given id", async () => {
    const bucket = await bucketOf("enabled");
    const first = await bucket.put("cat", "1", { metadata: { n: "1" } });
    const second = await bucket.put("cat", "22", { metadata: { n: "2" } });
    expect(await textOf(bucket, "cat")).toBe("22");
    expect(await textOf(bucket, "cat", first.versionId)).toBe("1");
    expect(await bucket.head("cat")).toMatchObject({ ...second, isLatest: true });
    expect(await bucket.head("cat", { versionId: first.versionId })).toMatchObject({
      versionId: first.versionId,
      size: 1,
      metadata: { n: "1" },
      isLatest: false,
    });
  });

  it("throw NO_SUCH_KEY with the id of the marker if the current version is a delete marker", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1");
    const marker = await bucket.delete("cat");
    for (const look of [bucket.get("cat"), bucket.head("cat")])
      await expect(look).rejects.toMatchObject({ code: "NO_SUCH_KEY", deleteMarker: marker.versionId });
    expect(await textOf(bucket, "cat", versionId)).toBe("1");
    expect((await bucket.head("cat", { versionId })).isLatest).toBe(false);
  });

  it("throw for a delete marker requested by its id", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    const { versionId } = await bucket.delete("cat");
    for (const look of [bucket.get("cat", { versionId }), bucket.head("cat", { versionId })])
      await expect(look).rejects.toMatchObject({ code: "NO_SUCH_KEY", deleteMarker: versionId });
  });

  it("throw NO_SUCH_VERSION for an unknown id, and accept null without versioning", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1");
    const other = (await bucket.put("dog", "1")).versionId;
    for (const id of [other, "null", "nonsense", ""])
      for (const look of [bucket.get("cat", { versionId: id }), bucket.head("cat", { versionId: id })])
        expect(await codeOf(look)).toBe("NO_SUCH_VERSION");
    expect(await codeOf(bucket.get("cow", { versionId }))).toBe("NO_SUCH_VERSION");
    const plain = await bucketOf("off");
    await plain.put("cat", "1");
    expect(await textOf(plain, "cat", "null")).toBe("1");
    expect((await plain.head("cat")).versionId).toBe("null");
  });
});

describe("a delete", () => {
  it("with versioning enabled adds a marker, even after another marker", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    const markers = [await bucket.delete("cat"), await bucket.delete("cat")];
    expect(markers.map(({ deleteMarker }) => deleteMarker)).toEqual([true, true]);
    expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "(marker)", "1"]);
    const { versions } = await bucket.listVersions();
    expect(versions.map(({ isLatest }) => isLatest)).toEqual([true, false, false]);
  });

  it("of a version removes it permanently; if it was current, the previous one becomes current", async () => {
    const bucket = await bucketOf("enabled");
    const ids = [];
    for (const text of ["1", "2", "3"]) ids.push((await bucket.put("cat", text)).versionId);
    expect(await bucket.delete("cat", { versionId: ids[1] })).toMatchObject({ deleteMarker: false });
    expect(await versionsOf(bucket, "cat")).toEqual(["3", "1"]);
    await bucket.delete("cat", { versionId: ids[2] });
    expect(await textOf(bucket, "cat")).toBe("1");
    expect(await codeOf(bucket.get("cat", { versionId: ids[2] }))).toBe("NO_SUCH_VERSION");
  });

  it("of a marker restores the object, and adds no marker", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    const { versionId } = await bucket.delete("cat");
    expect(await bucket.delete("cat", { versionId })).toEqual({ key: "cat", versionId, deleteMarker: true });
    expect(await textOf(bucket, "cat")).toBe("1");
    expect(await versionsOf(bucket, "cat")).toEqual(["1"]);
  });

  it("with versioning off removes the object", async () => {
    const bucket = await bucketOf("off");
    await bucket.put("cat", "1");
    expect(await bucket.delete("cat")).toEqual({ key: "cat", deleteMarker: false });
    expect(await versionsOf(bucket, "cat")).toEqual([]);
  });

  it("with versioning suspended replaces the null version by a null marker", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    await bucket.setVersioning("suspended");
    expect(await bucket.delete("cat")).toEqual({ key: "cat", versionId: "null", deleteMarker: true });
    expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "1"]);
    await bucket.put("cat", "2");
    expect(await versionsOf(bucket, "cat")).toEqual(["2", "1"]);
    await bucket.delete("cat");
    await bucket.delete("cat");
    expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "1"]);
  });

  it("of a missing object succeeds", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1");
    await bucket.delete("cat", { versionId });
    expect(await bucket.delete("cat", { versionId })).toEqual({ key: "cat", versionId, deleteMarker: false });
    expect(await bucket.delete("cat", { versionId: "nonsense" })).toMatchObject({ deleteMarker: false });
    expect(await bucket.delete("dog")).toMatchObject({ deleteMarker: true });
    expect(await versionsOf(bucket, "dog")).toEqual(["(marker)"]);
  });
});

describe("a delete marker", () => {
  it("has a key, an id and a time, and no size, ETag or body", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    const before = Date.now();
    const { versionId } = await bucket.delete("cat");
    const [marker] = (await bucket.listVersions()).versions;
    expect(marker).toMatchObject({ key: "cat", versionId, deleteMarker: true, isLatest: true, size: 0, etag: "" });
    expect(marker!.lastModified.getTime()).toBeGreaterThanOrEqual(before);
    expect((await bucket.list()).objects).toEqual([]);
  });

  it("that is the last entry of its key stays until it is deleted", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1");
    const marker = await bucket.delete("cat");
    await bucket.delete("cat", { versionId });
    expect(await versionsOf(bucket, "cat")).toEqual(["(marker)"]);
    await bucket.delete("cat", { versionId: marker.versionId });
    expect((await bucket.listVersions()).versions).toEqual([]);
  });
});

describe("a listing of versions", () => {
  it("shows versions and null versions of a suspended bucket, and null as the id without versioning", async () => {
    const bucket = await bucketOf("off");
    await bucket.put("cat", "1");
    expect((await bucket.listVersions()).versions.map(({ versionId }) => versionId)).toEqual(["null"]);
    await bucket.setVersioning("enabled");
    const { versionId } = await bucket.put("cat", "2");
    await bucket.setVersioning("suspended");
    await bucket.put("cat", "3");
    expect((await bucket.listVersions()).versions.map((each) => each.versionId)).toEqual(["null", versionId]);
  });

  it("of an empty bucket is empty, and of a missing bucket is refused", async () => {
    const store = await memoryStore();
    const bucket = await store.createBucket("photos", { versioning: "enabled" });
    expect(await bucket.listVersions()).toEqual({ versions: [], prefixes: [] });
    await store.deleteBucket("photos");
    expect(await codeOf(bucket.listVersions())).toBe("NO_SUCH_BUCKET");
  });

  it("describes each version as a get does", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "1");
    await bucket.put("cat", "22");
    for (const version of (await bucket.listVersions()).versions)
      expect(version).toEqual(await bucket.head("cat", { versionId: version.versionId }));
  });

  it("contains all versions of a key with many, in pages", { timeout: 60_000 }, async () => {
    const bucket = await bucketOf("enabled");
    for (let count = 0; count < 600; count++) await bucket.put("cat", String(count));
    const found: string[] = [];
    for await (const { versionId } of bucket.versions({ prefix: "c" })) found.push(versionId);
    expect(found).toEqual([...found].sort().reverse());
    expect(new Set(found).size).toBe(600);
    expect(await textOf(bucket, "cat", found[599])).toBe("0");
    expect(await textOf(bucket, "cat")).toBe("599");
  });
});

describe("a copy", () => {
  it("copies the named or the current version, and adds a version to the target", async () => {
    const store = await memoryStore();
    const from = await store.createBucket("from", { versioning: "enabled" });
    const to = await store.createBucket("to-there", { versioning: "enabled" });
    const { versionId } = await from.put("cat", "1");
    await from.put("cat", "2");
    const first = await to.copy({ bucket: "from", key: "cat", versionId }, "cat");
    const second = await to.copy({ bucket: "from", key: "cat" }, "cat");
    expect(await versionsOf(to, "cat")).toEqual(["2", "1"]);
    expect(await idsOf(to, "cat")).toEqual([second.versionId, first.versionId]);
    expect((await from.copy({ key: "cat", versionId }, "cat")).etag).toBe(first.etag);
    expect(await versionsOf(from, "cat")).toEqual(["1", "2", "1"]);
  });

  it("into a bucket without versions has the id null", async () => {
    const store = await memoryStore();
    const from = await store.createBucket("from", { versioning: "enabled" });
    await from.put("cat", "1");
    const to = await store.createBucket("to-there");
    expect((await to.copy({ bucket: "from", key: "cat" }, "cat")).versionId).toBe("null");
  });

  it("of a delete marker, a missing version or a missing object is refused", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1");
    const marker = await bucket.delete("cat");
    expect(await codeOf(bucket.copy({ key: "cat" }, "copy"))).toBe("NO_SUCH_KEY");
    expect(await codeOf(bucket.copy({ key: "cat", versionId: marker.versionId }, "copy"))).toBe("NO_SUCH_KEY");
    expect(await codeOf(bucket.copy({ key: "dog", versionId }, "copy"))).toBe("NO_SUCH_VERSION");
    expect(await codeOf(bucket.copy({ bucket: "nowhere", key: "cat" }, "copy"))).toBe("NO_SUCH_BUCKET");
    expect(await versionsOf(bucket, "copy")).toEqual([]);
  });
});
