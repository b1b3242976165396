import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Filter, filterBitsOf } from "../../../src/events/index/file/filter.ts";
import { hashOf } from "../../../src/events/index/keys/key-hash.ts";

describe("the hash of a key", () => {
  it("never makes a type, a tag and an id the same key", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        const kinds = new Set([hashOf("type", a).low & 3, hashOf("tag", b).low & 3, hashOf("id", a).low & 3]);
        expect(kinds.size).toBe(3);
      }),
    );
  });

  it("is the same in every release, because index files consist of it", () => {
    expect(hashOf("type", "Sold")).toEqual({ high: 581254486, low: 416302764 });
    expect(hashOf("tag", "kurs:ä€😀")).toEqual({ high: 220223199, low: 4215832117 });
    expect(hashOf("id", "")).toEqual({ high: 4256164918, low: 884440754 });
  });

  it("is different for two hundred thousand similar texts, and nearly so in each half", () => {
    const hashes = Array.from({ length: 200_000 }, (_, at) => hashOf("tag", `student:${at}`));
    expect(new Set(hashes.map(({ high, low }) => `${high} ${low}`)).size).toBe(200_000);
    // Chance alone gives 5 and 19 collisions.
    expect(new Set(hashes.map(({ high }) => high)).size).toBeGreaterThan(199_960);
    expect(new Set(hashes.map(({ low }) => low)).size).toBeGreaterThan(199_930);
  });
});

describe("the filter of keys", () => {
  it("never denies a key that is in it, and denies 998 of 1,000 that are not", () => {
    const filter = new Filter(new Uint8Array(filterBitsOf(20_000) / 8));
    for (let at = 0; at < 20_000; at++) filter.add(hashOf("tag", `there ${at}`));
    let wrong = 0;
    for (let at = 0; at < 20_000; at++) {
      if (!filter.mayHave(hashOf("tag", `there ${at}`))) throw new Error(`denied ${at}`);
      if (filter.mayHave(hashOf("tag", `absent ${at}`))) wrong++;
    }
    expect(wrong).toBeLessThan(40);
  });

  it("never denies a key in a filter of an older build, which has 10 bits for each key", () => {
    const filter = new Filter(new Uint8Array(25_001));
    const keys = Array.from({ length: 20_000 }, (_, at) => hashOf("tag", `there ${at}`));
    for (const key of keys) filter.add(key);
    expect(keys.every((key) => filter.mayHave(key))).toBe(true);
  });

  it("has nothing in it when there are no keys", () => {
    expect(new Filter(new Uint8Array(filterBitsOf(0) / 8)).mayHave(hashOf("tag", "any"))).toBe(false);
  });
});
