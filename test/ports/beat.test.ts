import { describe, expect, it } from "vitest";
import { decodeBeat, encodeBeat } from "../../src/format/beat.ts";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const wallMs = Date.UTC(2026, 7, 1, 12);

describe("a beat", () => {
  it("is one line that people can read", () => {
    expect(text(encodeBeat(42, wallMs))).toBe("beat 0000000000000042 2026-08-01T12:00:00.000Z\n");
  });

  it("has the same length whatever the count and the clock say", () => {
    const counts = [0, 1, Number.MAX_SAFE_INTEGER];
    const clocks = [-1, 0, wallMs, 8.64e15, Infinity];
    const lengths = counts.flatMap((count) => clocks.map((clock) => encodeBeat(count, clock).length));
    expect(new Set(lengths)).toEqual(new Set([47]));
  });

  it("is read back as it was written", () => {
    for (const count of [0, 7, Number.MAX_SAFE_INTEGER]) {
      expect(decodeBeat(encodeBeat(count, wallMs))).toEqual({ count, wallMs });
    }
  });

  it("is nothing else: not empty, cut, followed by more, or out of range", () => {
    const whole = encodeBeat(42, wallMs);
    expect(decodeBeat(bytes(""))).toBe(undefined);
    expect(decodeBeat(whole.slice(0, -1))).toBe(undefined);
    expect(decodeBeat(bytes(`${text(whole)}x`))).toBe(undefined);
    expect(decodeBeat(bytes("beat 9999999999999999 2026-08-01T12:00:00.000Z\n"))).toBe(undefined);
    expect(decodeBeat(bytes("beat 0000000000000042 2026-13-01T12:00:00.000Z\n"))).toBe(undefined);
    expect(decodeBeat(new Uint8Array(47).fill(0xff))).toBe(undefined);
  });

  it("has no count that could not be read back", () => {
    for (const count of [-1, 1.5, 2 ** 53, Number.NaN]) expect(() => encodeBeat(count, wallMs)).toThrow(RangeError);
  });
});
