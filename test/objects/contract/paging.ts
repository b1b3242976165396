// Pages of listings against a plain model: put together they are the whole, whatever the keys, the
// prefix, the delimiter and the limit, and whatever goes between two of them.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import type { ListOptions, ListVersionsOptions } from "../../../src/objects/model/object.ts";
import type { Versioning } from "../../../src/objects/model/object.ts";

/** Few letters, so that keys are prefixes of each other, end with a delimiter, and have it twice. */
const letters = ["a", "b", "/", "é", "😀"];
const word = (min: number, max: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...letters), { minLength: min, maxLength: max }).map((each) => each.join(""));
const question = fc.record({
  prefix: fc.oneof(fc.constant(""), word(1, 2)),
  delimiter: fc.oneof(fc.constant(""), fc.constant("/"), fc.constant("//"), word(1, 2)),
  limit: fc.integer({ min: 1, max: 4 }),
});
const keySets = fc.uniqueArray(word(1, 4), { minLength: 1, maxLength: 12 });

interface Question {
  readonly prefix: string;
  readonly delimiter: string;
}

function order(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** What is shown, in order; a common prefix in brackets. */
function modelOf(keys: readonly string[], { prefix, delimiter }: Question, show = (key: string) => [key]): string[] {
  const shown: string[] = [];
  for (const key of [...keys].sort(order)) {
    if (!key.startsWith(prefix)) continue;
    const rest = key.slice(prefix.length);
    if (delimiter === "" || !rest.includes(delimiter)) shown.push(...show(key));
    else {
      const common = `(${prefix}${rest.slice(0, rest.indexOf(delimiter))}${delimiter})`;
      if (!shown.includes(common)) shown.push(common);
    }
  }
  return shown;
}

/** A page tells objects and prefixes apart, so their order among each other is found by their names. */
function merged(objects: readonly (readonly [string, string])[], prefixes: readonly string[]): string[] {
  const all = [...objects, ...prefixes.map((prefix) => [prefix, `(${prefix})`] as const)];
  return all.sort(([one], [other]) => order(one, other)).map(([, shown]) => shown);
}

async function listed(bucket: Bucket, options: ListOptions): Promise<string[]> {
  const shown: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await bucket.list({ ...options, after });
    expect(page.objects.length + page.prefixes.length).toBeLessThanOrEqual(options.limit!);
    shown.push(
      ...merged(
        page.objects.map(({ key }) => [key, key]),
        page.prefixes,
      ),
    );
    if (page.next === undefined) return shown;
    after = page.next;
  }
}

async function listedVersions(bucket: Bucket, options: ListVersionsOptions): Promise<string[]> {
  const shown: string[] = [];
  for (let markers: ListVersionsOptions = {}; ;) {
    const page = await bucket.listVersions({ ...options, ...markers });
    shown.push(
      ...merged(
        page.versions.map(({ key, versionId }) => [key, `${key} ${versionId}`]),
        page.prefixes,
      ),
    );
    if (page.nextKeyMarker === undefined) return shown;
    markers = { keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker };
  }
}

/** A suspended bucket was enabled before. */
export type BucketMaker = (versioning: Versioning) => Promise<Bucket>;

export function describePaging(name: string, bucketOf: BucketMaker): void {
  describe(`pages on ${name}`, () => {
    it("pages of objects add up to the whole listing, for any keys, prefix, delimiter and limit", async () => {
      await fc.assert(
        fc.asyncProperty(keySets, fc.array(question, { minLength: 3, maxLength: 6 }), async (keys, questions) => {
          const bucket = await bucketOf("off");
          for (const key of keys) await bucket.put(key, "x");
          for (const each of questions) {
            expect(await listed(bucket, each)).toEqual(modelOf(keys, each));
            const { limit: _limit, ...whole } = each;
            expect(await listed(bucket, { ...whole, limit: 1000 })).toEqual(modelOf(keys, each));
          }
        }),
        {
          numRuns: 20,
          examples: [[["a/", "a/a", "a//", "a//b", "a/b"], [{ prefix: "a/", delimiter: "/", limit: 1 }]]],
        },
      );
    });

    it("pages of versions add up to the whole listing, for any keys, prefix, delimiter and limit", async () => {
      await fc.assert(
        fc.asyncProperty(keySets, fc.array(question, { minLength: 3, maxLength: 6 }), async (keys, questions) => {
          const bucket = await bucketOf("enabled");
          const ids = new Map<string, string[]>();
          for (const [index, key] of keys.entries()) {
            const own: string[] = [];
            for (let count = 0; count <= index % 3; count++) own.unshift((await bucket.put(key, "x")).versionId);
            if (index % 4 === 3) own.unshift((await bucket.delete(key)).versionId!);
            ids.set(key, own);
          }
          const show = (key: string): string[] => ids.get(key)!.map((id) => `${key} ${id}`);
          for (const each of questions) expect(await listedVersions(bucket, each)).toEqual(modelOf(keys, each, show));
        }),
        { numRuns: 12, examples: [[["a/", "a/a", "a//"], [{ prefix: "a/", delimiter: "/", limit: 1 }]]] },
      );
    });

    it("a page continues after the last version of the previous one, even if that was removed", async () => {
      const bucket = await bucketOf("enabled");
      const ids: string[] = [];
      for (let count = 0; count < 6; count++) ids.unshift((await bucket.put("cat", "x")).versionId);
      const { nextKeyMarker: keyMarker, nextVersionMarker: versionMarker } = await bucket.listVersions({ limit: 2 });
      await bucket.delete("cat", { versionId: ids[1] });
      await bucket.put("cat", "newer");
      const rest = await bucket.listVersions({ keyMarker, versionMarker });
      expect(rest.versions.map(({ versionId }) => versionId)).toEqual(ids.slice(2));
    });

    it("a page continues after a null version that was replaced or removed, and shows nothing twice", async () => {
      for (const change of ["replace", "remove"]) {
        const bucket = await bucketOf("enabled");
        const oldest = await bucket.put("cat", "1");
        await bucket.setVersioning("suspended");
        await bucket.put("cat", "null");
        await bucket.setVersioning("enabled");
        const newest = await bucket.put("cat", "3");
        await bucket.setVersioning("suspended");
        const page = await bucket.listVersions({ limit: 2 });
        expect(page.versions.map(({ versionId }) => versionId)).toEqual([newest.versionId, "null"]);
        if (change === "replace") await bucket.put("cat", "null again");
        else await bucket.delete("cat", { versionId: "null" });
        const rest = await bucket.listVersions({
          keyMarker: page.nextKeyMarker,
          versionMarker: page.nextVersionMarker,
        });
        expect(rest.versions.map(({ versionId }) => versionId)).toEqual([oldest.versionId]);
      }
    });

    it("a page continues after the null version if the marker is null", async () => {
      const bucket = await bucketOf("enabled");
      const oldest = await bucket.put("cat", "1");
      await bucket.setVersioning("suspended");
      await bucket.put("cat", "null");
      const rest = await bucket.listVersions({ keyMarker: "cat", versionMarker: "null" });
      expect(rest.versions.map(({ versionId }) => versionId)).toEqual([oldest.versionId]);
    });

    it("an iteration over all versions ends even if the program removes some of them meanwhile", async () => {
      const bucket = await bucketOf("enabled");
      for (let count = 0; count < 1005; count++) await bucket.put("cat", "x");
      const seen: string[] = [];
      for await (const { key, versionId } of bucket.versions()) {
        seen.push(versionId);
        if (seen.length === 1000) await bucket.delete(key, { versionId });
        if (seen.length > 1200) break;
      }
      expect(seen).toHaveLength(1005);
      expect(new Set(seen).size).toBe(1005);
    });
  });
}
