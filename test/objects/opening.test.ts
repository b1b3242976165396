// Opening an object store: alone, from a store, and in memory.
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openStore } from "../../src/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { codeOf, textOf, versionsOf } from "./object-sites.ts";

describe("opening an object store", () => {
  it("alone finds what another process put through its store, and the same holders", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    const objects = await store.objects();
    expect(await store.objects()).toBe(objects);
    await (await objects.createBucket("photos")).put("cat", "one");
    await using alone = await openObjects(join(directory, "objects"));
    expect(await textOf(await alone.bucket("photos"), "cat")).toBe("one");
    expect(await store.holders()).toHaveLength(2);
  });

  it("alone in the folder of a store without objects uses the ground of that store", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    await using alone = await openObjects(join(directory, "objects"));
    expect(await store.holders()).toHaveLength(2);
    await (await alone.createBucket("photos")).put("cat", "one");
    expect(await textOf(await (await store.objects()).bucket("photos"), "cat")).toBe("one");
  });

  it("in memory keeps what is put, without touching a disk", async () => {
    await using store = await openStore("memory:");
    const bucket = await (await store.objects()).createBucket("photos", { versioning: "enabled" });
    await bucket.put("cat", "x".repeat(100_000));
    expect(await textOf(bucket, "cat")).toBe("x".repeat(100_000));
  });

  it("waits for puts in progress when it closes, and throws CLOSED afterwards", async () => {
    const directory = makeScratch();
    const objects = await openObjects(directory);
    const bucket = await objects.createBucket("photos");
    const put = bucket.put("cat", "one");
    await objects.close();
    await put;
    expect(await codeOf(bucket.put("cat", "two"))).toBe("CLOSED");
    await using again = await openObjects(directory);
    expect(await textOf(await again.bucket("photos"), "cat")).toBe("one");
  });

  it("refuses unknown options, and a store in the directory of an object store", async () => {
    const directory = makeScratch();
    await expect(openObjects(directory, { inlneMax: 1 } as never)).rejects.toThrow(/inlneMax/);
    await using _objects = await openObjects(directory);
    expect(await codeOf(openStore(directory))).toBe("INVALID_PATH");
  });

  it("with create: false or a wrong id creates nothing and opens nothing", async () => {
    const directory = makeScratch();
    expect(await codeOf(openObjects(directory, { create: false }))).toBe("NOT_A_STORE");
    await (await openObjects(directory)).close();
    await using found = await openObjects(directory, { create: false });
    expect(found.directory).toBe(directory);
    expect(await codeOf(openObjects(directory, { id: "another" }))).toBe("WRONG_STORE");
    await expect(openObjects(directory, { inlineMax: -1 })).rejects.toThrow(RangeError);
    await expect(openObjects(directory, { durability: "sync" as never })).rejects.toThrow(TypeError);
  });

  it("in the directory of a store, or in a wrong folder of it, is refused with the right path", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    await store.locks();
    for (const wrong of [directory, join(directory, "files"), join(directory, "ground")])
      await expect(openObjects(wrong)).rejects.toMatchObject({
        code: "INVALID_PATH",
        message: expect.stringMatching(new RegExp(`: ${directory}/objects\\.$`)) as string,
      });
  });

  it("with read-only permission shows every object, and refuses a put", async () => {
    const directory = makeScratch();
    chmodSync(directory, 0o755);
    {
      await using objects = await openObjects(directory);
      const bucket = await objects.createBucket("photos", { versioning: "enabled" });
      for (const body of ["one", "x".repeat(100_000)]) await bucket.put("cat", body);
    }
    await asOrdinaryUser(async () => {
      await using objects = await openObjects(directory, { create: false });
      expect(await objects.listBuckets()).toMatchObject([{ name: "photos" }]);
      const bucket = await objects.bucket("photos");
      expect(await versionsOf(bucket, "cat")).toEqual(["x".repeat(100_000), "one"]);
      expect((await bucket.list()).objects).toMatchObject([{ key: "cat", size: 100_000 }]);
      expect(await objects.verify()).toMatchObject({ ok: true, checked: 2 });
      for (const body of ["two", "y".repeat(100_000)])
        expect(await codeOf(bucket.put("cat", body))).toBe("NO_PERMISSION");
      expect(await codeOf(objects.collect())).toBe("NO_PERMISSION");
    });
    await using objects = await openObjects(directory);
    expect(await versionsOf(await objects.bucket("photos"), "cat")).toHaveLength(2);
  });

  it("keeps few keys in memory after puts to many", async () => {
    await using store = await openStore("memory:");
    const objects = await store.objects();
    const bucket = await objects.createBucket("photos");
    for (let start = 0; start < 600; start += 50)
      await Promise.all(Array.from({ length: 50 }, (_, index) => bucket.put(`key ${start + index}`, "x")));
    expect(objects.keysInMemory).toBeLessThanOrEqual(256);
  });

  it("keeps no listed key with one version in memory, so that a listing evicts none", async () => {
    const directory = makeScratch();
    {
      await using objects = await openObjects(directory);
      const bucket = await objects.createBucket("photos", { versioning: "enabled" });
      for (const key of ["one", "two", "two", "three"]) await bucket.put(key, "x");
    }
    await using objects = await openObjects(directory);
    const { objects: listed } = await (await objects.bucket("photos")).list();
    expect(listed.map(({ key }) => key)).toEqual(["one", "three", "two"]);
    expect(objects.keysInMemory).toBe(1);
  });
});
