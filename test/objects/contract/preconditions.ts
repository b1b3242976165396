// Conditional writes on every kind of disk: of many rivals one wins.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import { codeOf, bucketOn, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

async function winnersOf(puts: readonly Promise<unknown>[]): Promise<string[]> {
  return (await Promise.all(puts.map(codeOf))).filter((code) => code !== "PRECONDITION_FAILED");
}

export function describePreconditions(name: string, make: StoreSiteMaker): void {
  describe(`conditional writes on ${name}`, () => {
    it("exactly one of many puts with ifNoneMatch * wins each round", async () => {
      const site = await make();
      const one = await (await site.open()).createBucket("photos", { versioning: "enabled" });
      const other = await (await site.open()).bucket("photos");
      for (let round = 0; round < 3; round++) {
        const key = `cat ${round}`;
        const puts = Array.from({ length: 6 }, (_, index) =>
          (index % 2 === 0 ? one : other).put(key, `put ${index}`, { ifNoneMatch: "*" }),
        );
        expect(await winnersOf(puts)).toEqual(["nothing failed"]);
        expect(await versionsOf(one, key)).toHaveLength(1);
      }
    });

    it("exactly one of many puts that replace the same version wins each round", async () => {
      const site = await make();
      const one = await (await site.open()).createBucket("photos");
      const other = await (await site.open()).bucket("photos");
      let { etag } = await one.put("cat", "first");
      for (let round = 0; round < 3; round++) {
        const puts = Array.from({ length: 6 }, (_, index) =>
          (index % 2 === 0 ? one : other).put("cat", `${round} ${index}`, { ifMatch: etag }),
        );
        expect(await winnersOf(puts)).toEqual(["nothing failed"]);
        ({ etag } = await other.head("cat"));
      }
    });

    it("a wrong ETag, or one of a missing object, is refused, and nothing is written", async () => {
      const bucket = await bucketOn(make);
      expect(await codeOf(bucket.put("cat", "x", { ifMatch: "0".repeat(32) }))).toBe("PRECONDITION_FAILED");
      const { etag, versionId } = await bucket.put("cat", "one");
      expect(etag).toBe("f97c5d29941bfb1b2fdab0874906ab82");
      await expect(bucket.put("cat", "x", { ifMatch: "0".repeat(32) })).rejects.toMatchObject({
        code: "PRECONDITION_FAILED",
        current: versionId,
      });
      expect(await codeOf(bucket.put("cat", "x", { ifVersion: "null" }))).toBe("PRECONDITION_FAILED");
      await bucket.put("cat", "two", { ifMatch: `"${etag}"` });
      expect(await versionsOf(bucket, "cat")).toEqual(["two", "one"]);
    });

    it("ifVersion tells versions with equal bodies apart", async () => {
      const bucket = await bucketOn(make);
      const first = await bucket.put("cat", "same");
      const second = await bucket.put("cat", "same");
      expect(second.etag).toBe(first.etag);
      expect(await codeOf(bucket.put("cat", "x", { ifVersion: first.versionId }))).toBe("PRECONDITION_FAILED");
      await bucket.put("cat", "new", { ifVersion: second.versionId });
      expect(await textOf(bucket, "cat")).toBe("new");
    });

    it("a delete marker counts as absent for a put, and a conditional delete requires the object", async () => {
      const bucket = await bucketOn(make);
      expect(await codeOf(bucket.delete("cat", { ifMatch: "*" }))).toBe("PRECONDITION_FAILED");
      const { etag } = await bucket.put("cat", "one", { ifNoneMatch: "*" });
      expect(await codeOf(bucket.delete("cat", { ifMatch: "0".repeat(32) }))).toBe("PRECONDITION_FAILED");
      const { size, lastModified } = await bucket.head("cat");
      const other = new Date(lastModified.getTime() - 1000);
      for (const wrong of [{ ifSize: size + 1 }, { ifLastModified: other }, { ifMatch: etag, ifSize: size + 1 }])
        expect(await codeOf(bucket.delete("cat", wrong))).toBe("PRECONDITION_FAILED");
      await bucket.delete("cat", { ifSize: size, ifLastModified: lastModified });
      expect(await codeOf(bucket.delete("cat", { ifSize: size }))).toBe("PRECONDITION_FAILED");
      await bucket.put("cat", "one");
      await bucket.delete("cat", { ifMatch: etag });
      expect(await codeOf(bucket.delete("cat", { ifMatch: etag }))).toBe("PRECONDITION_FAILED");
      expect(await codeOf(bucket.put("cat", "x", { ifMatch: etag }))).toBe("PRECONDITION_FAILED");
      await bucket.put("cat", "two", { ifNoneMatch: "*" });
      expect(await versionsOf(bucket, "cat")).toEqual(["two", "(marker)", "one", "(marker)", "one"]);
    });

    it("concurrent updates of many callers are all in the result", async () => {
      const site = await make();
      const one = await (await site.open()).createBucket("photos");
      const other = await (await site.open()).bucket("photos");
      const add = (bucket: Bucket, word: string): Promise<unknown> =>
        bucket.update("list", async (current) => `${(await current?.text()) ?? ""}${word};`);
      await Promise.all(["a", "b", "c", "d", "e", "f"].map((word, index) => add(index % 2 === 0 ? one : other, word)));
      expect((await textOf(one, "list")).split(";").sort().join("")).toBe("abcdef");
      expect(await one.update("list", () => undefined)).toBeUndefined();
    });
  });
}
