import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBeat, encodeBeat } from "./beat.ts";

const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const wallMs = fc.integer({ min: 0, max: wallMsMax });
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe("a beat", () => {
  it("is a readable line of 47 bytes", () => {
    expect(text(encodeBeat(42, Date.UTC(2026, 7, 1, 12)))).toBe("beat 0000000000000042 2026-08-01T12:00:00.000Z\n");
  });

  it("has always the same length, so that each is written over the last and nothing of it is left", () => {
    fc.assert(
      fc.property(count, fc.oneof(wallMs, fc.double({ noNaN: true })), (number, ms) => {
        expect(encodeBeat(number, ms)).toHaveLength(47);
      }),
    );
  });

  it("decodes to its count and time", () => {
    fc.assert(
      fc.property(count, wallMs, (number, ms) => {
        expect(decodeBeat(encodeBeat(number, ms))).toEqual({ count: number, wallMs: ms });
        expect(decodeBeat(encodeBeat(number, ms, 30_000))).toEqual({ count: number, wallMs: ms, leaseMs: 30_000 });
        expect(encodeBeat(number, ms, 2 ** 31 - 1)).toHaveLength(58);
      }),
    );
  });

  it("differs from the one before, also when the clock stands still or goes back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 1 }), wallMs, wallMs, (number, a, b) => {
        expect(text(encodeBeat(number, a))).not.toBe(text(encodeBeat(number + 1, b)));
      }),
    );
  });

  it("keeps its length for a clock before 1970 or after 9999", () => {
    expect(decodeBeat(encodeBeat(1, -5))).toEqual({ count: 1, wallMs: 0 });
    expect(decodeBeat(encodeBeat(1, Infinity))).toEqual({ count: 1, wallMs: wallMsMax });
  });

  it.each([-1, 0.5, NaN, Infinity, 2 ** 53])("is refused for a count of %d", (number) => {
    expect(() => encodeBeat(number, 0)).toThrow(RangeError);
  });
});

describe("decodeBeat", () => {
  const whole = Buffer.from(encodeBeat(1, 0));

  it("returns undefined for every truncated beat", () => {
    for (let length = 0; length < whole.length; length++) expect(decodeBeat(whole.subarray(0, length))).toBe(undefined);
    for (let start = 1; start < whole.length; start++) expect(decodeBeat(whole.subarray(start))).toBe(undefined);
  });

  it.each([
    ["nothing", ""],
    ["two beats", text(Buffer.concat([whole, whole]))],
    ["a byte order mark before it", `\ufeff${text(whole)}`],
    ["Windows line ends", text(whole).replace("\n", "\r\n")],
    ["zeros, as after a power cut", "\0".repeat(47)],
    ["a count beyond what a number carries", "beat 9999999999999999 2026-08-01T12:00:00.000Z\n"],
    ["a day that does not exist", "beat 0000000000000001 2026-13-01T12:00:00.000Z\n"],
    ["another file", "pid=1\ntimestamp=2\n"],
  ])("is undefined for %s", (_, content) => {
    expect(decodeBeat(Buffer.from(content))).toBe(undefined);
  });

  it("never throws, whatever the file contains", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => void decodeBeat(bytes)));
  });
});
