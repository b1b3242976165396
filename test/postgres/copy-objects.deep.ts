// `holdfast copy` of object stores: through the public interface, a copy shows the same buckets, and
// the same versions with the same ids, times, bodies and attributes as its source.
import { randomUUID } from "node:crypto";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { copyStore } from "../../src/index.ts";
import { openObjects, type Bucket } from "../../src/objects/index.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { Database } from "../../src/postgres/connection/database.ts";
import { makeScratch } from "../sites/scratch.ts";
import { serverUrl } from "./stores.ts";

const large = Buffer.alloc(1_300_000, "large ").toString();
const hard = 'ü/"\\\ud83d\ude00 ';

function folder(): string {
  return join(makeScratch(), "objects");
}

function rows(): string {
  const url = new URL(serverUrl());
  url.searchParams.set("store", randomUUID());
  url.hash = "objects";
  return url.href;
}

/** Everything that an object store can have while no upload is in progress. */
async function fill(location: string): Promise<void> {
  await using store = await openObjects(location);
  const plain = await store.createBucket("plain");
  await plain.put("a", "one");
  await plain.put("a", "two", { contentType: "text/plain", cacheControl: "no-store", metadata: { by: hard }, tags: { z: "1", a: hard } }); // prettier-ignore
  await plain.put(hard, large, { checksum: { algorithm: "CRC32C" }, acl: "public" });
  await plain.put("empty", "");
  await plain.put("gone", "x");
  await plain.delete("gone");
  await plain.setConfig({ lifecycle: [{ id: "old", prefix: "tmp/", expireDays: 3 }], tags: { team: "shop" } });
  await plain.setDocument("policy", JSON.stringify({ a: [1, hard] }));
  const upload = await plain.createUpload("parts", { checksum: { algorithm: "SHA256" } });
  await upload.complete([await upload.put(1, large), await upload.put(2, "the end")]);
  // So many parts that a folder names them in a record of their own.
  const many = await plain.createUpload("many");
  await many.complete(await Promise.all(Array.from({ length: 40 }, (_, i) => many.put(i + 1, `part ${i}, `))));
  const kept = await store.createBucket("kept", { versioning: "enabled" });
  for (let i = 0; i < 5; i++) await kept.put("v", `${i}`.repeat(i * 20_000 + 1));
  const ids = (await collect(kept, "v")).map(({ versionId }) => versionId);
  await kept.delete("v", { versionId: ids[1] });
  await kept.delete("v", { versionId: ids[4] });
  await kept.setTags("v", { changed: "yes" }, { versionId: ids[2] });
  await kept.delete("v");
  await kept.setVersioning("suspended");
  await kept.put("v", "null version");
  await kept.put("w", "null 1");
  await kept.put("w", "null 2");
  await kept.setVersioning("enabled");
  await kept.put("v", "newest");
  await kept.delete("w");
  const locked = await store.createBucket("locked", { objectLock: true });
  await locked.setConfig({ defaultRetention: { mode: "governance", days: 1 } });
  await locked.put("r", "retained");
  await locked.put("h", "held", { legalHold: true });
  await locked.setLegalHold("h", false);
  await locked.setLegalHold("r", true);
  await locked.setRetention("r", { mode: "governance", until: new Date(Date.UTC(2090, 1, 1)) });
  await locked.put("c", "compliant", { retention: { mode: "compliance", until: new Date(Date.UTC(2090, 1, 2)) } });
  // So many removed versions that a folder drops blocks of them.
  for (let i = 0; i < 6; i++) await Promise.all(Array.from({ length: 100 }, () => kept.put("hot", "h")));
  const hot = (await collect(kept, "hot")).slice(1).map(({ versionId }) => ({ key: "hot", versionId }));
  await kept.deleteMany(hot);
}

async function collect(bucket: Bucket, key: string): Promise<{ versionId: string }[]> {
  const versions: { versionId: string }[] = [];
  for await (const version of bucket.versions({ key })) versions.push(version);
  return versions;
}

/** How many bodies of a store in the database a collection would remove. */
async function unnamedBodies(location: string): Promise<number> {
  const database = await Database.open(location, nodeClock);
  try {
    const [row] = await database.query<{ count: number }>(
      `select count(*) as count from hf_blob b join hf_part p on p.p = b.p where p.store = $1 and b.gone_after is not null`,
      [database.location.store],
    );
    return row?.count ?? 0;
  } finally {
    await database.close();
  }
}

async function dump(location: string): Promise<unknown> {
  await using store = await openObjects(location, { create: false });
  const all: unknown[] = [];
  for (const info of await store.listBuckets()) {
    const bucket = await store.bucket(info.name);
    const versions: unknown[] = [];
    for await (const version of bucket.versions()) {
      const { key, versionId, deleteMarker } = version;
      if (deleteMarker) versions.push(version);
      else {
        const at = { versionId };
        const body = await (await bucket.get(key, at)).text();
        versions.push({ ...version, body, tags: await bucket.tags(key, at), parts: await bucket.parts(key, at) });
      }
    }
    const listed: string[] = [];
    for await (const { key } of bucket.objects()) listed.push(key);
    all.push({ ...info, config: await bucket.config(), versions, listed });
  }
  const { problems } = await store.verify();
  return { all, problems };
}

describe.each([
  ["a folder to a database, and back", folder, rows, folder],
  ["a database to a folder, and to another folder", rows, folder, folder],
] as const)("an object store copied from %s", (_, makeFrom, makeTo, makeBack) => {
  test("has the same buckets and versions, and goes on", async () => {
    const [from, to, back] = [makeFrom(), makeTo(), makeBack()];
    await fill(from);
    const before = await dump(from);
    expect(before).toMatchObject({ problems: [] });
    const [copied] = await copyStore(from, to, { verify: true });
    expect(copied).toMatchObject({ part: "objects", added: 11, total: 11, equal: true });
    expect(await dump(to)).toEqual(before);
    if (to.startsWith("postgres:")) expect(await unnamedBodies(to)).toBe(0);
    expect(await copyStore(from, to, { verify: true })).toMatchObject([{ added: 0, total: 11, equal: true }]);
    await copyStore(to, back, { verify: true });
    expect(await dump(back)).toEqual(before);
    await using store = await openObjects(to, { create: false });
    const kept = await store.bucket("kept");
    const { versionId } = await kept.put("hot", "after");
    expect((await collect(kept, "hot")).map((each) => each.versionId)[0]).toBe(versionId);
    await expect((await store.bucket("locked")).delete("r", { versionId: (await collect(await store.bucket("locked"), "r"))[0]?.versionId })).rejects.toMatchObject({ code: "RETAINED" }); // prettier-ignore
    await (await store.bucket("plain")).delete("parts");
    await (await store.bucket("plain")).delete("many");
    await store.collect();
    expect((await store.verify()).problems).toEqual([]);
    await store.close();
    await expect(copyStore(from, to)).rejects.toMatchObject({ code: "COPY_CONFLICT" });
  });
});

test("an interrupted copy of objects continues, and what cannot be copied is named", async () => {
  const [from, to] = [folder(), rows()];
  {
    await using store = await openObjects(from);
    const bucket = await store.createBucket("films");
    await Promise.all(Array.from({ length: 200 }, (_, i) => bucket.put(`k${i}`, String(i))));
  }
  const stop = new AbortController();
  const { signal } = stop;
  await expect(copyStore(from, to, { signal, onProgress: () => stop.abort() })).rejects.toThrow();
  const [rest] = await copyStore(from, to, { verify: true });
  expect(rest).toMatchObject({ total: 200, equal: true });
  expect(rest?.added).toBeLessThan(200);
  for (const location of [folder(), rows()]) {
    {
      await using store = await openObjects(location);
      await (await store.createBucket("films")).createUpload("film");
    }
    await expect(copyStore(location, folder())).rejects.toMatchObject({ code: "UNSUPPORTED", what: expect.stringContaining('of "film" in the bucket films') }); // prettier-ignore
  }
});

test("a damaged body is named, and the copy refused", async () => {
  const [from, to] = [folder(), rows()];
  {
    await using store = await openObjects(from);
    await (await store.createBucket("films")).put("film", large);
  }
  const files = (await readdir(from, { recursive: true })).filter((path) => /bodies[/\\]\w+[/\\]\w+$/.test(path));
  const [path = ""] = files.map((file) => join(from, file));
  await writeFile(path, large.replace("large", "LARGE"));
  await expect(copyStore(from, to)).rejects.toMatchObject({ code: "CORRUPT", message: expect.stringContaining('"film"') }); // prettier-ignore
  await rm(path);
  await expect(copyStore(from, to)).rejects.toThrow();
  await writeFile(path, large);
  expect(await copyStore(from, to, { verify: true })).toMatchObject([{ added: 1, equal: true }]);
});
