// Uploads in parts on every kind of disk: completed once, whole, without a copy.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Upload } from "../../../src/objects/model/bucket.ts";
import { codeOf, bucketOn, textOf, versionsOf, type StoreSiteMaker } from "../object-sites.ts";

const one = "the first part. ".repeat(10);
const two = "the second part. ".repeat(10);

async function putParts(upload: Upload, ...texts: string[]): Promise<{ partNumber: number; etag: string }[]> {
  const parts: { partNumber: number; etag: string }[] = [];
  for (const [index, text] of texts.entries()) {
    const { partNumber, etag } = await upload.put(index + 1, text);
    parts.push({ partNumber, etag });
  }
  return parts;
}

export function describeUploads(name: string, make: StoreSiteMaker): void {
  describe(`uploads on ${name}`, () => {
    it("become one version with all parts in order, and are invisible before", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
      const other = await (await site.open()).bucket("photos");
      const upload = await bucket.createUpload("film", {
        contentType: "video/mp4",
        metadata: { a: "1" },
        tags: { b: "2" },
      });
      const again = await other.upload("film", upload.id);
      const second = await again.put(2, two);
      await upload.put(1, "replaced");
      const first = await upload.put(1, one);
      expect(await codeOf(bucket.get("film"))).toBe("NO_SUCH_KEY");
      expect((await other.listUploads()).uploads).toEqual([
        { id: upload.id, key: "film", startedAt: upload.startedAt },
      ]);
      expect((await again.parts()).parts.map(({ partNumber, size }) => [partNumber, size])).toEqual([
        [1, one.length],
        [2, two.length],
      ]);
      const version = await again.complete([first, second]);
      const md5s = [one, two].map((text) => createHash("md5").update(text).digest());
      expect(version.etag).toBe(`${createHash("md5").update(Buffer.concat(md5s)).digest("hex")}-2`);
      expect(version).toMatchObject({ size: one.length + two.length, contentType: "video/mp4", metadata: { a: "1" } });
      expect(await textOf(bucket, "film")).toBe(one + two);
      expect(await bucket.tags("film")).toEqual({ b: "2" });
      await using range = await bucket.get("film", { range: { start: one.length - 5, end: one.length + 4 } });
      expect(await range.text()).toBe((one + two).slice(one.length - 5, one.length + 5));
      expect((await other.listUploads()).uploads).toEqual([]);
      expect(await codeOf(upload.put(3, "late"))).toBe("NO_SUCH_UPLOAD");
    });

    it("that are completed twice, even concurrently, become one version", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
      const upload = await bucket.createUpload("film");
      const parts = await putParts(upload, one, two);
      const rival = await (await (await site.open()).bucket("photos")).upload("film", upload.id);
      const ids = (await Promise.all([upload, rival, upload, rival].map((each) => each.complete(parts)))).map(
        ({ versionId }) => versionId,
      );
      expect(new Set([...ids, (await rival.complete(parts)).versionId]).size).toBe(1);
      expect(await versionsOf(bucket, "film")).toEqual([one + two]);
      expect(await codeOf(upload.complete(parts.slice(0, 1)))).toBe("INVALID_PART");
      expect(await codeOf(rival.abort())).toBe("NO_SUCH_UPLOAD");
    });

    it("return the same version again even if a part was being replaced; that part is not acknowledged", async () => {
      const bucket = await bucketOn(make);
      const upload = await bucket.createUpload("film");
      const parts = await putParts(upload, one);
      let open: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => (open = resolve));
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield Buffer.from("another ");
        await gate;
        yield Buffer.from("part");
      }
      const late = codeOf(upload.put(1, slow()));
      const { versionId } = await upload.complete(parts);
      open();
      expect(await late).toBe("NO_SUCH_UPLOAD");
      expect((await upload.complete(parts)).versionId).toBe(versionId);
      expect(await versionsOf(bucket, "film")).toEqual([one]);
    });

    it("running beside each other and collections get their own version or abort", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open()];
      for (const versioning of ["off", "enabled"] as const) {
        const name = `photos-${versioning}`;
        await stores[0]!.createBucket(name, { versioning });
        const buckets = await Promise.all(stores.map((store) => store.bucket(name)));
        for (let round = 0; round < 3; round++) {
          const begun = await Promise.all(
            [...buckets, ...buckets].map(async (bucket, index) => {
              const upload = await bucket.createUpload("film");
              return { upload, parts: await putParts(upload, `${index}`), isAborted: index === 3 };
            }),
          );
          const ends = begun.map(({ upload, parts, isAborted }) =>
            isAborted ? upload.abort() : upload.complete(parts),
          );
          const told = await Promise.all([...ends, ...stores.map((store) => store.collect())].map(codeOf));
          expect(new Set(told)).toEqual(new Set(["nothing failed"]));
        }
      }
    });

    it("that are aborted leave nothing; either the abort or the completion wins", async () => {
      const site = await make();
      const store = await site.open();
      const bucket = await store.createBucket("photos", { versioning: "enabled" });
      for (let round = 0; round < 3; round++) {
        const key = `film ${round}`;
        const upload = await bucket.createUpload(key);
        const parts = await putParts(upload, one, two);
        expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
        const rival = await (await (await site.open()).bucket("photos")).upload(key, upload.id);
        const [completed, aborted] = await Promise.all([codeOf(upload.complete(parts)), codeOf(rival.abort())]);
        expect([completed, aborted].sort()).toEqual(["NO_SUCH_UPLOAD", "nothing failed"]);
        expect(await versionsOf(bucket, key)).toEqual(aborted === "nothing failed" ? [] : [one + two]);
      }
      const upload = await bucket.createUpload("film");
      const parts = await putParts(upload, one);
      await upload.abort();
      expect(await codeOf(upload.complete(parts))).toBe("NO_SUCH_UPLOAD");
      expect(await codeOf(bucket.upload("film", upload.id))).toBe("NO_SUCH_UPLOAD");
    });

    it("with missing or wrong parts are refused, and can be completed later", async () => {
      const bucket = await bucketOn(make);
      const upload = await bucket.createUpload("film");
      const parts = await putParts(upload, one, two);
      const [first, second] = parts as [(typeof parts)[number], (typeof parts)[number]];
      for (const list of [
        [],
        [second, first],
        [first, { ...second, etag: first.etag }],
        [first, { partNumber: 3, etag: "x" }],
      ])
        expect(await codeOf(upload.complete(list))).toBe("INVALID_PART");
      await bucket.put("film", "in the way");
      expect(await codeOf(upload.complete(parts, { ifNoneMatch: "*" }))).toBe("PRECONDITION_FAILED");
      expect(await codeOf(upload.put(1, one, { size: 3 }))).toBe("BAD_DIGEST");
      await expect(upload.put(0, one)).rejects.toThrow(RangeError);
      const copied = await upload.copy(3, { key: "film" });
      await upload.complete([...parts, copied]);
      expect(await versionsOf(bucket, "film")).toEqual([`${one}${two}in the way`, "in the way"]);
    });

    it("are removed with their version, so that the bucket can be deleted", async () => {
      const store = await (await make()).open();
      const bucket = await store.createBucket("photos", { versioning: "enabled" });
      const upload = await bucket.createUpload("film");
      const { versionId } = await upload.complete(await putParts(upload, one, two));
      await bucket.delete("film", { versionId });
      expect(await codeOf(upload.complete([{ partNumber: 1, etag: "x" }]))).toBe("NO_SUCH_UPLOAD");
      await store.deleteBucket("photos");
    });

    it("list their parts with the checksums that were sent", async () => {
      const bucket = await bucketOn(make);
      const upload = await bucket.createUpload("film", { checksum: { algorithm: "SHA256", type: "composite" } });
      const parts = [await upload.put(1, one), await upload.put(2, two)];
      await upload.complete(parts);
      const told = parts.map(({ size, checksum }) => ({ size, checksum: checksum?.value }));
      expect(await bucket.parts("film")).toEqual(told);
      await bucket.put("cat", one);
      expect(await bucket.parts("cat")).toEqual([]);
    });

    it("in progress block the deletion of their bucket, unless they are aborted with it", async () => {
      const store = await (await make()).open();
      const bucket = await store.createBucket("photos");
      const upload = await bucket.createUpload("film");
      const parts = await putParts(upload, one, two);
      await bucket.put("cat", "1");
      expect(await codeOf(store.deleteBucket("photos", { abortUploads: true }))).toBe("BUCKET_NOT_EMPTY");
      await bucket.delete("cat");
      expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
      await store.deleteBucket("photos", { abortUploads: true });
      expect(await codeOf(upload.complete(parts))).toBe("NO_SUCH_BUCKET");
      const again = await store.createBucket("photos");
      expect(await codeOf(upload.complete(parts))).toBe("NO_SUCH_UPLOAD");
      expect((await again.listUploads()).uploads).toEqual([]);
    });

    it("are read whole by an open reader while they are replaced or deleted", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      const other = await (await site.open()).bucket("photos");
      for (const change of [() => other.put("film", "short"), () => other.delete("film")]) {
        const upload = await bucket.createUpload("film");
        await upload.complete(await putParts(upload, one, two, one));
        await using object = await bucket.get("film");
        await change();
        expect(await object.text()).toBe(one + two + one);
      }
    });
  });
}
