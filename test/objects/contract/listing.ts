// Listings on every kind of disk: in UTF-8 byte order, in pages, by prefix and delimiter.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import type { ListVersionsOptions } from "../../../src/objects/model/object.ts";
import { codeOf, bucketOn, type StoreSiteMaker } from "../object-sites.ts";

/** All pages: objects and common prefixes as they come. */
async function pagesOf(bucket: Bucket, options: Parameters<Bucket["list"]>[0]): Promise<string[][]> {
  const pages: string[][] = [];
  for (let after: string | undefined; ;) {
    const page = await bucket.list({ ...options, ...(after === undefined ? {} : { after }) });
    pages.push([...page.objects.map(({ key }) => key), ...page.prefixes.map((prefix) => `(${prefix})`)]);
    if (page.next === undefined) return pages;
    after = page.next;
  }
}

async function versionPagesOf(bucket: Bucket, options: ListVersionsOptions): Promise<string[][]> {
  const pages: string[][] = [];
  for (let markers: ListVersionsOptions = {}; ;) {
    const page = await bucket.listVersions({ ...options, ...markers });
    pages.push([
      ...page.versions.map(
        ({ key, deleteMarker, size, isLatest }) => `${key}${deleteMarker ? "!" : size}${isLatest ? "*" : ""}`,
      ),
      ...page.prefixes.map((prefix) => `(${prefix})`),
    ]);
    if (page.nextKeyMarker === undefined) return pages;
    markers = { keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker };
  }
}

export function describeListings(name: string, make: StoreSiteMaker): void {
  describe(`listings on ${name}`, () => {
    it("are in UTF-8 byte order; pages omit nothing and show nothing twice", async () => {
      const bucket = await bucketOn(make, "off");
      // In the order of JavaScript strings the emoji would come before the private character.
      const keys = ["Z", "a", "a b", "aa", "b", "z", "é", "\ue000", "😀"];
      for (const key of [...keys].reverse()) await bucket.put(key, "x");
      for (const limit of [1, 2, 4, 9, 1000]) {
        const pages = await pagesOf(bucket, { limit });
        expect(pages.flat()).toEqual(keys);
        expect(pages.every((page) => page.length <= limit)).toBe(true);
      }
      expect(await pagesOf(bucket, { prefix: "a" })).toEqual([["a", "a b", "aa"]]);
      expect(await pagesOf(bucket, { after: "b" })).toEqual([["z", "é", "\ue000", "😀"]]);
      expect(await pagesOf(bucket, { prefix: "nothing" })).toEqual([[]]);
      const all: string[] = [];
      for await (const { key } of bucket.objects({ prefix: "a" })) all.push(key);
      expect(all).toEqual(["a", "a b", "aa"]);
    });

    it("group keys below a delimiter under one prefix, across pages too", async () => {
      const bucket = await bucketOn(make, "off");
      for (const key of ["2023/a", "2023/b", "2024/c", "2024/d/e", "index", "zoo/x"]) await bucket.put(key, "x");
      expect(await pagesOf(bucket, { delimiter: "/" })).toEqual([["index", "(2023/)", "(2024/)", "(zoo/)"]]);
      expect(await pagesOf(bucket, { delimiter: "/", limit: 1 })).toEqual([
        ["(2023/)"],
        ["(2024/)"],
        ["index"],
        ["(zoo/)"],
      ]);
      expect(await pagesOf(bucket, { delimiter: "/", prefix: "2024/" })).toEqual([["2024/c", "(2024/d/)"]]);
      await bucket.delete("zoo/x");
      expect((await pagesOf(bucket, { delimiter: "/" })).flat()).not.toContain("(zoo/)");
    });

    it("of versions show the newest first, include markers, and continue within a key", async () => {
      const bucket = await bucketOn(make, "enabled");
      await bucket.put("a", "1");
      await bucket.put("a", "22");
      await bucket.delete("a");
      await bucket.put("b", "333");
      await bucket.put("c/d", "4444");
      const all = ["a!*", "a2", "a1", "b3*", "c/d4*"];
      for (const limit of [1, 2, 3, 5]) expect((await versionPagesOf(bucket, { limit })).flat()).toEqual(all);
      expect(await versionPagesOf(bucket, { prefix: "a" })).toEqual([["a!*", "a2", "a1"]]);
      expect(await versionPagesOf(bucket, { delimiter: "/", limit: 4 })).toEqual([
        ["a!*", "a2", "a1", "b3*"],
        ["(c/)"],
      ]);
      expect((await bucket.list()).objects.map(({ key }) => key)).toEqual(["b", "c/d"]);
    });

    it("of another process contain every object whose put was acknowledged", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      const other = await (await site.open()).bucket("photos");
      for (let count = 0; count < 5; count++) {
        await Promise.all(["a", "b", "c"].map((name) => bucket.put(`${name}${count}`, "x")));
        expect((await other.list()).objects).toHaveLength(3 * (count + 1));
      }
      await bucket.delete("a0");
      expect((await other.list()).objects.map(({ key }) => key)).not.toContain("a0");
    });

    it("contain every object while other processes merge announcements into runs", async () => {
      const site = await make();
      const bucket = await (await site.open()).createBucket("photos");
      const mergers = [await site.open(), await site.open()];
      const other = await mergers[0]!.bucket("photos");
      const keys: string[] = [];
      for (let round = 0; round < 5; round++) {
        const fresh = ["x", "é", "😀", "a/b"].map((name) => `${name} ${(round * 7) % 5}`);
        await Promise.all([...fresh.map((key) => bucket.put(key, "x")), ...mergers.map((store) => store.collect())]);
        keys.push(...fresh);
        const sorted = [...keys].sort((one, next) => Buffer.compare(Buffer.from(one), Buffer.from(next)));
        expect((await pagesOf(other, { limit: 3 })).flat()).toEqual(sorted);
        expect((await pagesOf(bucket, {})).flat()).toEqual(sorted);
      }
    });

    it("refuse invalid options and missing buckets", async () => {
      const site = await make();
      const store = await site.open();
      const bucket = await store.createBucket("photos");
      for (const limit of [-1, 1001, 1.5]) await expect(bucket.list({ limit })).rejects.toThrow(RangeError);
      await expect(bucket.list({ perfix: "a" } as never)).rejects.toThrow(/perfix/);
      await store.deleteBucket("photos");
      expect(await codeOf(bucket.list())).toBe("NO_SUCH_BUCKET");
      expect(await codeOf(bucket.listVersions())).toBe("NO_SUCH_BUCKET");
    });
  });
}
