// Conditional writes, deletes of many, retention and holds as users of S3 know them: each test is a
// scenario that such a store is accepted by.
import { describe, expect, it } from "vitest";
import { codeOf, textOf, versionsOf } from "../object-sites.ts";
import { bucketOf, lockedBucket, memoryStore } from "./memory-bucket.ts";

const inDays = (days: number): Date => new Date(Date.now() + days * 86_400_000);
const other = "0".repeat(32);

describe("a put with ifNoneMatch *", () => {
  it("succeeds if there is no object or a delete marker, and is refused if there is an object", async () => {
    const bucket = await bucketOf("enabled");
    const { versionId } = await bucket.put("cat", "1", { ifNoneMatch: "*" });
    await expect(bucket.put("cat", "2", { ifNoneMatch: "*" })).rejects.toMatchObject({
      code: "PRECONDITION_FAILED",
      current: versionId,
    });
    await bucket.delete("cat");
    await bucket.put("cat", "3", { ifNoneMatch: "*" });
    expect(await versionsOf(bucket, "cat")).toEqual(["3", "(marker)", "1"]);
  });

  it("succeeds for exactly one of many concurrent puts", async () => {
    for (const versioning of ["enabled", "suspended", "off"] as const) {
      const bucket = await bucketOf(versioning);
      const codes = await Promise.all(
        Array.from({ length: 10 }, (_, index) => codeOf(bucket.put("cat", String(index), { ifNoneMatch: "*" }))),
      );
      expect(codes.filter((code) => code === "nothing failed")).toHaveLength(1);
      expect(codes.filter((code) => code === "PRECONDITION_FAILED")).toHaveLength(9);
      expect(await versionsOf(bucket, "cat")).toHaveLength(1);
    }
  });

  it("is decided by the state at the moment it commits, while the object is deleted and put again", async () => {
    const bucket = await bucketOf("off");
    for (let round = 0; round < 10; round++) {
      await bucket.put("cat", "old");
      const [deleted, put] = await Promise.all([
        codeOf(bucket.delete("cat")),
        codeOf(bucket.put("cat", "new", { ifNoneMatch: "*" })),
      ]);
      expect(deleted).toBe("nothing failed");
      const left = await versionsOf(bucket, "cat");
      // Refused: it came first and found the old one. Done: it came second.
      expect(left).toEqual(put === "nothing failed" ? ["new"] : []);
      await bucket.delete("cat");
    }
  });
});

describe("a put with ifMatch", () => {
  it("succeeds if the current version has the ETag, and is refused otherwise", async () => {
    const bucket = await bucketOf("enabled");
    const { etag } = await bucket.put("cat", "1");
    const second = await bucket.put("cat", "2", { ifMatch: etag });
    expect(await codeOf(bucket.put("cat", "3", { ifMatch: etag }))).toBe("PRECONDITION_FAILED");
    await bucket.put("cat", "3", { ifMatch: `"${second.etag}"` });
    expect(await versionsOf(bucket, "cat")).toEqual(["3", "2", "1"]);
  });

  it("is refused if there is no object, or a delete marker", async () => {
    const bucket = await bucketOf("enabled");
    expect(await codeOf(bucket.put("cat", "1", { ifMatch: other }))).toBe("PRECONDITION_FAILED");
    const { etag } = await bucket.put("cat", "1");
    await bucket.delete("cat");
    expect(await codeOf(bucket.put("cat", "2", { ifMatch: etag }))).toBe("PRECONDITION_FAILED");
  });

  it("cannot be combined with ifNoneMatch *, and takes only strings", async () => {
    const bucket = await bucketOf("off");
    await expect(bucket.put("cat", "1", { ifMatch: other, ifNoneMatch: "*" })).rejects.toThrow(TypeError);
    await expect(bucket.put("cat", "1", { ifNoneMatch: 5 as never })).rejects.toThrow(TypeError);
    await expect(bucket.put("cat", "1", { ifMatch: 5 as never })).rejects.toThrow(TypeError);
  });
});

describe("a put with ifNoneMatch of an ETag", () => {
  it("is refused if the current version has the ETag, and succeeds if it has another or there is none", async () => {
    const bucket = await bucketOf("enabled");
    const { etag } = await bucket.put("cat", "1", { ifNoneMatch: other });
    for (const ifNoneMatch of [etag, `"${etag}"`, `"${other}", "${etag}"`])
      expect(await codeOf(bucket.put("cat", "1", { ifNoneMatch }))).toBe("PRECONDITION_FAILED");
    expect(await codeOf(bucket.put("cat", "1", { ifMatch: etag, ifNoneMatch: etag }))).toBe("PRECONDITION_FAILED");
    await bucket.put("cat", "2", { ifMatch: etag, ifNoneMatch: other });
    await bucket.put("cat", "1", { ifNoneMatch: etag });
    await bucket.delete("cat");
    await bucket.put("cat", "1", { ifNoneMatch: etag });
  });
});

describe("a multipart upload with a condition", () => {
  it("is completed if there is no object; otherwise it is refused, and the upload is kept", async () => {
    const bucket = await bucketOf("enabled");
    const upload = await bucket.createUpload("film");
    const part = await upload.put(1, "one");
    const version = await upload.complete([part], { ifNoneMatch: "*" });
    expect(await textOf(bucket, "film")).toBe("one");
    const late = await bucket.createUpload("film");
    const again = await late.put(1, "two");
    expect(await codeOf(late.complete([again], { ifNoneMatch: "*" }))).toBe("PRECONDITION_FAILED");
    expect(await codeOf(late.complete([again], { ifMatch: other }))).toBe("PRECONDITION_FAILED");
    await late.complete([again], { ifMatch: version.etag });
    expect(await versionsOf(bucket, "film")).toEqual(["two", "one"]);
  });

  it("exactly one of a completion and a concurrent put is the first", async () => {
    for (let round = 0; round < 5; round++) {
      const bucket = await bucketOf("enabled");
      const upload = await bucket.createUpload("film");
      const part = await upload.put(1, "parts");
      const codes = await Promise.all([
        codeOf(upload.complete([part], { ifNoneMatch: "*" })),
        codeOf(bucket.put("film", "whole", { ifNoneMatch: "*" })),
      ]);
      expect(codes.sort()).toEqual(["PRECONDITION_FAILED", "nothing failed"]);
      expect(await versionsOf(bucket, "film")).toHaveLength(1);
    }
  });
});

describe("a delete with a condition", () => {
  it("succeeds if the object has the ETag, or with *, and is refused otherwise", async () => {
    const bucket = await bucketOf("off");
    const { etag } = await bucket.put("cat", "1");
    expect(await codeOf(bucket.delete("cat", { ifMatch: other }))).toBe("PRECONDITION_FAILED");
    await bucket.delete("cat", { ifMatch: etag });
    await bucket.put("cat", "2");
    await bucket.delete("cat", { ifMatch: "*" });
    expect(await codeOf(bucket.delete("cat", { ifMatch: "*" }))).toBe("PRECONDITION_FAILED");
  });

  it("racing a put deletes the object that it names, or none", async () => {
    const bucket = await bucketOf("off");
    for (let round = 0; round < 10; round++) {
      const { etag } = await bucket.put("cat", `old ${round}`);
      const [deleted] = await Promise.all([
        codeOf(bucket.delete("cat", { ifMatch: etag })),
        bucket.put("cat", `new ${round}`),
      ]);
      expect(["nothing failed", "PRECONDITION_FAILED"]).toContain(deleted);
      expect(await versionsOf(bucket, "cat")).toEqual([`new ${round}`]);
    }
  });

  it("racing another delete is refused: there is nothing left to delete", async () => {
    const bucket = await bucketOf("off");
    const { etag } = await bucket.put("cat", "1");
    const codes = await Promise.all([1, 2].map(() => codeOf(bucket.delete("cat", { ifMatch: etag }))));
    expect(codes.sort()).toEqual(["PRECONDITION_FAILED", "nothing failed"]);
  });
});

describe("deleteMany", () => {
  it("deletes a thousand objects, and refuses more", async () => {
    const bucket = await bucketOf("off");
    const keys = Array.from({ length: 1000 }, (_, index) => `key ${index}`);
    await Promise.all(keys.map((key) => bucket.put(key, "x")));
    await expect(bucket.deleteMany([...keys, "one more"].map((key) => ({ key })))).rejects.toThrow(RangeError);
    expect((await bucket.list()).objects).toHaveLength(1000);
    expect(await bucket.deleteMany(keys.map((key) => ({ key })))).toHaveLength(1000);
    expect((await bucket.list()).objects).toEqual([]);
  });

  it("reports the result of each item; a failing item does not block the others", async () => {
    const bucket = await lockedBucket();
    const held = await bucket.put("held", "1", { legalHold: true });
    const free = await bucket.put("free", "1");
    const answers = await bucket.deleteMany([
      { key: "held", versionId: held.versionId },
      { key: "nothing" },
      { key: "free", versionId: free.versionId },
      { key: "" },
    ]);
    expect(answers[0]).toMatchObject({ key: "held", error: { code: "RETAINED" } });
    expect(answers[1]).toMatchObject({ key: "nothing", deleteMarker: true });
    expect(answers[2]).toEqual({ key: "free", versionId: free.versionId, deleteMarker: false });
    expect(answers[3]).toMatchObject({ error: { code: "INVALID_NAME" } });
    expect(await versionsOf(bucket, "free")).toEqual([]);
    expect(await versionsOf(bucket, "held")).toEqual(["1"]);
  });

  it("adds markers and removes versions and markers, as each item asks", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("a", "1");
    const { versionId } = await bucket.put("b", "1");
    await bucket.put("c", "1");
    const marker = await bucket.delete("c");
    await bucket.deleteMany([{ key: "a" }, { key: "b", versionId }, { key: "c", versionId: marker.versionId }]);
    expect(await versionsOf(bucket, "a")).toEqual(["(marker)", "1"]);
    expect(await versionsOf(bucket, "b")).toEqual([]);
    expect(await versionsOf(bucket, "c")).toEqual(["1"]);
  });
});

describe("a retention", () => {
  it("is set per version, by the put or later", async () => {
    const bucket = await lockedBucket();
    const [soon, later] = [inDays(1), inDays(2)];
    const first = await bucket.put("cat", "1", { retention: { mode: "governance", until: soon } });
    const second = await bucket.put("cat", "2");
    expect(first.retention).toEqual({ mode: "governance", until: soon });
    expect(second.retention).toBeUndefined();
    await bucket.setRetention("cat", { mode: "compliance", until: later });
    const told = async (versionId: string) => (await bucket.head("cat", { versionId })).retention;
    expect(await told(first.versionId)).toEqual({ mode: "governance", until: soon });
    expect(await told(second.versionId)).toEqual({ mode: "compliance", until: later });
  });

  it("in compliance mode can be extended, but not shortened, lifted or changed to governance", async () => {
    const bucket = await lockedBucket();
    const { versionId } = await bucket.put("cat", "1", { retention: { mode: "compliance", until: inDays(2) } });
    await bucket.setRetention("cat", { mode: "compliance", until: inDays(3) });
    const bypassGovernance = true;
    for (const weaker of [
      { mode: "compliance", until: inDays(1) },
      { mode: "governance", until: inDays(4) },
      undefined,
    ] as const)
      expect(await codeOf(bucket.setRetention("cat", weaker, { bypassGovernance }))).toBe("RETAINED");
    expect(await codeOf(bucket.delete("cat", { versionId, bypassGovernance }))).toBe("RETAINED");
  });

  it("in governance mode blocks the removal of a version, unless it is bypassed explicitly", async () => {
    const bucket = await lockedBucket();
    const { versionId } = await bucket.put("cat", "1", { retention: { mode: "governance", until: inDays(1) } });
    await expect(bucket.delete("cat", { versionId })).rejects.toMatchObject({ code: "RETAINED", key: "cat" });
    expect((await bucket.delete("cat")).deleteMarker).toBe(true);
    await bucket.put("cat", "2");
    await bucket.delete("cat", { versionId, bypassGovernance: true });
    expect(await versionsOf(bucket, "cat")).toEqual(["2", "(marker)"]);
  });

  it("that has expired protects nothing, and the default of a bucket can be lifted", async () => {
    const bucket = await lockedBucket();
    const past = await bucket.put("cat", "1", { retention: { mode: "compliance", until: inDays(-1) } });
    await bucket.delete("cat", { versionId: past.versionId });
    await bucket.setConfig({ defaultRetention: { mode: "compliance", days: 365 } });
    expect((await bucket.config()).defaultRetention).toEqual({ mode: "compliance", days: 365 });
    const { versionId, retention } = await bucket.put("cat", "2");
    expect(retention!.until.getTime()).toBeGreaterThan(inDays(364).getTime());
    expect(await codeOf(bucket.delete("cat", { versionId }))).toBe("RETAINED");
    await bucket.setConfig({ defaultRetention: undefined });
    expect((await bucket.put("cat", "3")).retention).toBeUndefined();
  });
});

describe("a legal hold", () => {
  it("protects a version until it is lifted, even from a governance bypass", async () => {
    const bucket = await lockedBucket();
    const { versionId } = await bucket.put("cat", "1", { retention: { mode: "governance", until: inDays(1) } });
    await bucket.setLegalHold("cat", true);
    const remove = (bypassGovernance: boolean) => codeOf(bucket.delete("cat", { versionId, bypassGovernance }));
    expect(await remove(true)).toBe("RETAINED");
    await bucket.setLegalHold("cat", false);
    expect(await remove(false)).toBe("RETAINED");
    expect(await remove(true)).toBe("nothing failed");
  });

  it("applies to one version, and is reported", async () => {
    const bucket = await lockedBucket();
    const first = await bucket.put("cat", "1");
    const second = await bucket.put("cat", "2", { legalHold: true });
    await bucket.setLegalHold("cat", true, { versionId: first.versionId });
    await bucket.setLegalHold("cat", false, { versionId: second.versionId });
    expect((await bucket.head("cat", { versionId: first.versionId })).legalHold).toBe(true);
    expect((await bucket.head("cat")).legalHold).toBe(false);
  });

  it("and a retention are refused in a bucket without object lock, and for a missing object", async () => {
    const plain = await bucketOf("enabled");
    await plain.put("cat", "1");
    await expect(plain.setLegalHold("cat", true)).rejects.toThrow(TypeError);
    await expect(plain.setRetention("cat", { mode: "governance", until: inDays(1) })).rejects.toThrow(TypeError);
    await expect(plain.setConfig({ objectLock: true, versioning: "suspended" })).rejects.toThrow(TypeError);
    await expect((await memoryStore()).createBucket("vault", { objectLock: true, versioning: "off" })).rejects.toThrow(
      TypeError,
    );
    const bucket = await lockedBucket();
    expect(await codeOf(bucket.setLegalHold("cat", true))).toBe("NO_SUCH_KEY");
    expect(await codeOf(bucket.setRetention("cat", undefined, { versionId: "null" }))).toBe("NO_SUCH_VERSION");
    await expect(bucket.setVersioning("suspended")).rejects.toThrow(TypeError);
  });
});

describe("read, change and write", () => {
  it("with the ETag that was read loses no change of any writer", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("count", "0");
    const add = async (): Promise<void> => {
      for (;;) {
        await using object = await bucket.get("count");
        const next = String(Number(await object.text()) + 1);
        if ((await codeOf(bucket.put("count", next, { ifMatch: object.etag }))) === "nothing failed") return;
      }
    };
    await Promise.all([1, 2, 3, 4, 5].map(add));
    expect(await textOf(bucket, "count")).toBe("5");
    expect(await versionsOf(bucket, "count")).toEqual(["5", "4", "3", "2", "1", "0"]);
  });

  it("reports a lost race with PRECONDITION_FAILED and the current version", async () => {
    const bucket = await bucketOf("enabled");
    const { etag } = await bucket.put("cat", "1");
    const { versionId } = await bucket.put("cat", "2");
    await expect(bucket.put("cat", "3", { ifMatch: etag })).rejects.toMatchObject({
      code: "PRECONDITION_FAILED",
      key: "cat",
      current: versionId,
    });
  });
});
