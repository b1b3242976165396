import { describe, expect, it } from "vitest";
import { nodeRandom } from "../../src/ports/node/random.ts";

describe("real chance", () => {
  it("gives as many bytes as asked for, never the same sixteen again", () => {
    const seen = new Set(Array.from({ length: 5000 }, () => Buffer.from(nodeRandom.bytes(16)).toString("hex")));
    expect(seen.size).toBe(5000);
    for (const length of [0, 1, 4095, 4096, 4097, 100_000]) expect(nodeRandom.bytes(length)).toHaveLength(length);
  });

  it("gives bytes that stay as they are when more are asked for", () => {
    const first = nodeRandom.bytes(16);
    const copy = Buffer.from(first);
    for (let i = 0; i < 1000; i++) nodeRandom.bytes(16);
    expect(Buffer.from(first).equals(copy)).toBe(true);
  });

  it("gives fractions from 0 up to but not including 1, spread over the whole", () => {
    const fractions = Array.from({ length: 2000 }, () => nodeRandom.fraction());
    expect(Math.min(...fractions)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...fractions)).toBeLessThan(1);
    for (let tenth = 0; tenth < 10; tenth++) {
      expect(fractions.some((fraction) => Math.floor(fraction * 10) === tenth)).toBe(true);
    }
  });
});
