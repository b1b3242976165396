// Uploads in parts on every kind of disk: completed once, whole, without a copy.
import { describe, expect, it } from "vitest";
import type { Upload } from "../../src/objects/model/bucket.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, newBucket, objectsOn, textOf } from "./object-sites.ts";

async function putParts(upload: Upload, ...texts: string[]): Promise<{ partNumber: number; etag: string }[]> {
  const parts: { partNumber: number; etag: string }[] = [];
  for (const [index, text] of texts.entries()) {
    const { partNumber, etag } = await upload.put(index + 1, text);
    parts.push({ partNumber, etag });
  }
  return parts;
}

describe.each(sites)("uploads on %s", (_name, make) => {
  it("of a thousand parts become one version that can be read from any part", async () => {
    if (_name !== "the memory disk") return;
    const bucket = await newBucket(make);
    const upload = await bucket.createUpload("film");
    const texts = Array.from({ length: 1000 }, (_, index) => `part ${String(index).padStart(5, "0")}.`);
    const version = await upload.complete(await putParts(upload, ...texts));
    expect(version.etag).toMatch(/-1000$/);
    expect(await textOf(bucket, "film")).toBe(texts.join(""));
    await using range = await bucket.get("film", { range: { start: 500 * 11 + 5, end: 501 * 11 + 9 } });
    expect(await range.text()).toBe("00500.part 00501");
  });
});

it("an upload of more parts than a record names becomes one version, is read in order, and leaves nothing when deleted", async () => {
  const [, [, makeMemory]] = sites as [unknown, (typeof sites)[number]];
  const site = await objectsOn(makeMemory);
  const store = await site.open();
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  const upload = await bucket.createUpload("film");
  const texts = Array.from({ length: 400 }, (_, index) => `part ${index}, `);
  const parts = await Promise.all(texts.map((text, index) => upload.put(index + 1, text)));
  const version = await upload.complete(parts);
  expect(version).toMatchObject({ size: texts.join("").length });
  expect(version.etag).toMatch(/-400$/);
  expect(await textOf(bucket, "film")).toBe(texts.join(""));
  expect((await upload.complete(parts)).versionId).toBe(version.versionId);
  expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  await bucket.delete("film", { versionId: version.versionId });
  const { disk } = await site.openPorts();
  const photos = `${site.directory}/objects/buckets/photos`;
  const [incarnation] = (await disk.list(photos)).filter((name) => name !== "config");
  expect(await disk.list(`${photos}/${incarnation!}/uploads`)).toEqual([]);
  expect(await codeOf(upload.complete(parts))).toBe("NO_SUCH_UPLOAD");
});
