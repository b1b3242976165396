// The contract of lifecycle rules: what is due goes with a collection, at its time and not before, and
// nothing that is retained.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import { codeOf, smallInline, textOf, versionsOf, type StoreSite } from "../object-sites.ts";

export const dayMs = 86_400_000;
const long = (text: string): string => `${text}, in a body that is stored apart from its version`;

/** An object store that can be collected as if at a later time. */
export interface AgingSite extends StoreSite {
  nowMs(): Promise<number>;
  collectAfter(days: number): Promise<unknown>;
}

async function keysOf(bucket: Bucket): Promise<string[]> {
  return (await bucket.list()).objects.map(({ key }) => key);
}

export function describeLifecycle(name: string, make: () => Promise<AgingSite>): void {
  describe(`lifecycle rules on ${name}`, () => {
    it("objects expire after their days: by a delete marker with versioning, permanently without", async () => {
      const site = await make();
      const store = await site.open(smallInline);
      const lifecycle = [{ prefix: "logs/", expireDays: 30 }];
      const kept = await store.createBucket("kept", { versioning: "enabled" });
      const plain = await store.createBucket("plain");
      for (const bucket of [kept, plain]) {
        await bucket.setConfig({ lifecycle });
        for (const key of ["logs/1", "notes/1"]) await bucket.put(key, long(key));
      }
      await site.collectAfter(29);
      for (const bucket of [kept, plain]) expect(await keysOf(bucket)).toEqual(["logs/1", "notes/1"]);
      await site.collectAfter(31);
      for (const bucket of [kept, plain]) expect(await keysOf(bucket)).toEqual(["notes/1"]);
      expect(await versionsOf(kept, "logs/1")).toEqual(["(marker)", long("logs/1")]);
      expect(await versionsOf(plain, "logs/1")).toEqual([]);
      // Again, and later: a mark of a delete that hides versions stays as it is.
      await site.collectAfter(90);
      expect(await versionsOf(kept, "logs/1")).toEqual(["(marker)", long("logs/1")]);
    });

    it("noncurrent versions are removed after their days, except the newest", async () => {
      const site = await make();
      const bucket = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
      await bucket.setConfig({ lifecycle: [{ noncurrent: { days: 7, keep: 1 } }] });
      for (const text of ["one", "two", "three", "four"]) await bucket.put("cat", long(text));
      await site.collectAfter(6);
      expect(await versionsOf(bucket, "cat")).toHaveLength(4);
      await site.collectAfter(7.01);
      expect(await versionsOf(bucket, "cat")).toEqual([long("four"), long("three")]);
      expect(await textOf(bucket, "cat")).toBe(long("four"));
    });

    it("a lone delete marker is removed, and then its key", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
      await bucket.setConfig({ lifecycle: [{ removeLoneMarkers: true, noncurrent: { days: 1 } }] });
      await bucket.put("cat", "one");
      await bucket.delete("cat");
      await site.collectAfter(0.5);
      expect(await versionsOf(bucket, "cat")).toEqual(["(marker)", "one"]);
      await site.collectAfter(2);
      expect(await versionsOf(bucket, "cat")).toEqual(["(marker)"]);
      await site.collectAfter(2);
      expect(await versionsOf(bucket, "cat")).toEqual([]);
    });

    it("retained and held versions stay until they are released", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos", { objectLock: true });
      await bucket.setConfig({ lifecycle: [{ expireDays: 1, noncurrent: { days: 1 } }] });
      const until = new Date((await site.nowMs()) + 20 * dayMs);
      await bucket.put("retained", "one", { retention: { mode: "governance", until } });
      const { versionId } = await bucket.put("held", "one", { legalHold: true });
      for (const key of ["retained", "held", "free"]) await bucket.put(key, "two");
      await site.collectAfter(5);
      expect(await versionsOf(bucket, "retained")).toEqual(["(marker)", "two", "one"]);
      await site.collectAfter(10);
      expect(await versionsOf(bucket, "retained")).toEqual(["(marker)", "one"]);
      expect(await versionsOf(bucket, "held")).toEqual(["(marker)", "one"]);
      expect(await versionsOf(bucket, "free")).toEqual(["(marker)"]);
      await bucket.setLegalHold("held", false, { versionId });
      await site.collectAfter(21);
      expect(await versionsOf(bucket, "retained")).toEqual(["(marker)"]);
      expect(await versionsOf(bucket, "held")).toEqual(["(marker)"]);
    });

    it("incomplete uploads are aborted after their days, and a completed one stays", async () => {
      const site = await make();
      const bucket = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
      await bucket.setConfig({ lifecycle: [{ prefix: "big/", abortUploadsDays: 7 }] });
      const [left, other, done] = [
        await bucket.createUpload("big/left"),
        await bucket.createUpload("other"),
        await bucket.createUpload("big/done"),
      ];
      for (const upload of [left, other]) await upload.put(1, "part");
      await done.put(1, "first try");
      const part = await done.put(1, "second try");
      await done.put(2, "never named");
      await done.complete([part]);
      await site.collectAfter(6);
      expect((await bucket.listUploads()).uploads.map(({ key }) => key)).toEqual(["big/left", "other"]);
      await site.collectAfter(8);
      expect((await bucket.listUploads()).uploads.map(({ key }) => key)).toEqual(["other"]);
      expect(await codeOf(left.put(2, "late"))).toBe("NO_SUCH_UPLOAD");
      expect(await textOf(bucket, "big/done")).toBe("second try");
    });
  });
}
