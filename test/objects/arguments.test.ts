// Arguments that make no sense are told before anything is written, and a signal is heard wherever a
// call may take long.
import { describe, expect, it } from "vitest";
import { bucketOf, lockedBucket, memorySite, memoryStore } from "./acceptance/memory-bucket.ts";
import { codeOf, newBucket, textOf } from "./object-sites.ts";

async function kindOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "it was done",
    (error: unknown) => (error as Error).name,
  );
}

async function drained(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

describe("unknown options", () => {
  it("are refused by name, even if another call has them", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "x");
    const upload = await bucket.createUpload("film");
    const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["ifMatch", () => bucket.update("cat", () => "y", { ifMatch: "x" } as never)],
      ["ifVersion", () => bucket.update("cat", () => "y", { ifVersion: "x" } as never)],
      ["ifNoneMatch", () => bucket.createUpload("film", { ifNoneMatch: "*" } as never)],
      ["md5", () => bucket.createUpload("film", { md5: "x" } as never)],
      ["version", () => bucket.copy({ key: "cat", version: "x" } as never, "dog")],
      ["version", () => upload.copy(1, { key: "cat", version: "x" } as never)],
      ["version", () => bucket.setAcl("cat", "x", { version: "x" } as never)],
    ];
    for (const [name, call] of calls) {
      const said = await call().then(
        () => "it was done",
        (error: unknown) => String(error),
      );
      expect(said).toMatch(new RegExp(`^TypeError: .*"${name}"`));
    }
    expect((await bucket.list()).objects.map(({ key }) => key)).toEqual(["cat"]);
    expect(await textOf(bucket, "cat")).toBe("x");
  });
});

describe("arguments of the wrong type", () => {
  it("of a bucket are refused before anything is written, and the bucket is unchanged", async () => {
    const store = await memoryStore();
    for (const objectLock of ["yes", 1, null])
      expect(await kindOf(store.createBucket("films", { objectLock } as never))).toBe("TypeError");
    expect(await store.findBucket("films")).toBeUndefined();
    const bucket = await lockedBucket();
    const before = await bucket.config();
    const wrong: readonly (readonly [string, object])[] = [
      ["TypeError", { objectLock: "yes" }],
      ["TypeError", { tags: { a: 1 } }],
      ["TypeError", { tags: null }],
      ["TypeError", { documents: { cors: 5 } }],
      ["TypeError", { documents: "cors" }],
      ["TypeError", { defaultRetention: null }],
      ["TypeError", { defaultRetention: { mode: "forever", days: 1 } }],
      ["TypeError", { defaultRetention: { mode: "governance", days: 1, years: 1 } }],
      ...[0, -1, 1.5, 36_501, Number.NaN, "1", undefined].map(
        (days) => ["RangeError", { defaultRetention: { mode: "governance", days } }] as const,
      ),
      ["TypeError", { lifecycle: [{ id: 5, expireDays: 1 }] }],
      ["TypeError", { lifecycle: [{ tags: { a: 1 }, expireDays: 1 }] }],
      ["TypeError", { lifecycle: [{ removeLoneMarkers: "yes" }] }],
      ["TypeError", { lifecycle: [null] }],
    ];
    for (const [kind, change] of wrong)
      expect([change, await kindOf(bucket.setConfig(change as never))]).toEqual([change, kind]);
    await bucket.setConfig({ tags: undefined, documents: undefined, lifecycle: undefined } as never);
    expect(await bucket.config()).toEqual(before);
    for (const days of [1, 36_500]) {
      await bucket.setConfig({ defaultRetention: { mode: "governance", days } });
      expect((await bucket.config()).defaultRetention).toEqual({ mode: "governance", days });
    }
    await bucket.setConfig({ defaultRetention: undefined });
    expect(await bucket.config()).toEqual(before);
  });

  it("of a retention are refused before anything is written", async () => {
    const bucket = await lockedBucket();
    const until = new Date(Date.now() + 1000);
    for (const [kind, retention] of [
      ["RangeError", { mode: "governance", until: new Date(-1) }],
      ["TypeError", { mode: "governance", until: new Date(Number.NaN) }],
      ["TypeError", { mode: "governance", until: until.getTime() }],
      ["TypeError", { mode: "governance", until, days: 1 }],
      ["TypeError", null],
    ] as const) {
      expect(await kindOf(bucket.put("cat", "x", { retention } as never))).toBe(kind);
      expect(await kindOf(bucket.setRetention("cat", retention as never))).toBe(kind);
    }
    expect((await bucket.listVersions()).versions).toEqual([]);
  });

  it("of listings, parts and updates are refused; a limit of 0 returns an empty page", async () => {
    const bucket = await bucketOf("enabled");
    await bucket.put("cat", "x");
    const upload = await bucket.createUpload("film");
    await upload.put(1, "x");
    for (const option of ["prefix", "delimiter", "after"])
      for (const value of [5, null, "\ud800"]) expect(await kindOf(bucket.list({ [option]: value }))).toBe("TypeError");
    for (const option of ["prefix", "delimiter", "keyMarker", "versionMarker"])
      expect(await kindOf(bucket.listVersions({ [option]: 5 }))).toBe("TypeError");
    for (const option of ["prefix", "keyMarker", "idMarker"])
      expect(await kindOf(bucket.listUploads({ [option]: 5 }))).toBe("TypeError");
    expect(await kindOf(drained(bucket.objects({ prefix: 5 as never })))).toBe("TypeError");
    expect(await kindOf(drained(bucket.versions({ key: 5 as never })))).toBe("TypeError");
    for (const limit of [-1, 1.5, 1001, "1"]) {
      const options = { limit: limit as number };
      for (const call of [bucket.list(options), bucket.listVersions(options), bucket.listUploads(options)])
        expect(await kindOf(call)).toBe("RangeError");
      expect(await kindOf(upload.parts(options))).toBe("RangeError");
    }
    for (const after of [-1, 1.5, "1"])
      expect(await kindOf(upload.parts({ after: after as number }))).toBe("RangeError");
    for (const retries of [-1, 1.5, Number.NaN])
      expect(await kindOf(bucket.update("cat", () => "y", { retries }))).toBe("RangeError");
    expect(await bucket.list({ limit: 0 })).toEqual({ objects: [], prefixes: [] });
    expect(await bucket.listVersions({ limit: 0 })).toEqual({ versions: [], prefixes: [] });
    expect(await bucket.listUploads({ limit: 0 })).toEqual({ uploads: [] });
    expect(await upload.parts({ limit: 0 })).toEqual({ parts: [] });
  });
});

it("a copy that does not match the declared digest is not stored", async () => {
  const bucket = await bucketOf("enabled");
  const { etag } = await bucket.put("cat", "meow");
  for (const wrong of [{ size: 3 }, { md5: "0".repeat(32) }])
    expect(await codeOf(bucket.copy({ key: "cat" }, "dog", wrong))).toBe("BAD_DIGEST");
  expect(await codeOf(bucket.get("dog"))).toBe("NO_SUCH_KEY");
  await bucket.copy({ key: "cat" }, "dog", { size: 4, md5: etag });
  expect(await textOf(bucket, "dog")).toBe("meow");
});

it("a condition on a missing or deleted object throws PRECONDITION_FAILED without a current version", async () => {
  const bucket = await bucketOf("enabled");
  const { etag } = await bucket.put("gone", "x");
  await bucket.delete("gone");
  for (const key of ["never", "gone"])
    for (const call of [
      () => bucket.put(key, "y", { ifMatch: etag }),
      () => bucket.delete(key, { ifMatch: etag }),
      () => bucket.copy({ key: "cat" }, key, { ifMatch: etag }),
    ]) {
      await bucket.put("cat", "x");
      const error = await call().catch((each: unknown) => each);
      expect(error).toMatchObject({ code: "PRECONDITION_FAILED", key });
      expect((error as { current?: string }).current).toBeUndefined();
    }
});

describe("a signal that aborts", () => {
  it("immediately ends an update whose change hangs, with its reason", async () => {
    const bucket = await bucketOf("enabled");
    const abort = new AbortController();
    const updating = bucket.update("cat", () => new Promise<never>(() => undefined), { signal: abort.signal });
    setImmediate(() => abort.abort(new Error("enough")));
    await expect(updating).rejects.toThrow("enough");
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
  });

  it("stops an iteration between two entries", async () => {
    const bucket = await bucketOf("enabled");
    for (const key of ["a", "b", "c"]) await bucket.put(key, "x");
    await bucket.put("a", "y");
    for (const items of [
      (signal: AbortSignal) => bucket.objects({ signal }),
      (signal: AbortSignal) => bucket.versions({ signal }),
      (signal: AbortSignal) => bucket.versions({ key: "a", signal }),
    ]) {
      const abort = new AbortController();
      let seen = 0;
      const reading = (async () => {
        for await (const _ of items(abort.signal)) {
          seen++;
          abort.abort(new Error("enough"));
        }
      })();
      await expect(reading).rejects.toThrow("enough");
      expect(seen).toBe(1);
    }
  });

  it("stops the stream of an object of any size", async () => {
    for (const inlineMax of [0, 16 * 1024 * 1024]) {
      const bucket = await newBucket(memorySite, "enabled", { inlineMax });
      await bucket.put("cat", Buffer.alloc(1024 * 1024, 1));
      const abort = new AbortController();
      await using object = await bucket.get("cat", { signal: abort.signal });
      const reading = (async () => {
        for await (const _ of object.stream()) abort.abort(new Error("enough"));
      })();
      await expect(reading).rejects.toThrow("enough");
    }
  });
});

it("exactly one of many callers that delete a bucket succeeds; the others get NO_SUCH_BUCKET", async () => {
  const store = await memoryStore();
  await store.createBucket("films");
  const told = await Promise.all(Array.from({ length: 8 }, () => codeOf(store.deleteBucket("films"))));
  expect(told.sort()).toEqual([...Array.from({ length: 7 }, () => "NO_SUCH_BUCKET"), "nothing failed"]);
});
