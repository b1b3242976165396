import { InvalidArgumentError } from "commander";
import { describe, expect, test } from "vitest";
import { parseDuration } from "./duration.ts";

describe("a duration", () => {
  test.each([
    ["30s", 30_000],
    ["500ms", 500],
    ["2m", 120_000],
    ["0s", 0],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(["", "s", "-1s", "1.5s", "5 s", "5S", "1w", "1e3", "Infinity", "0x10", "9999999999999", "30s30"])(
    "is not written %j",
    (text) => {
      expect(() => parseDuration(text)).toThrow(InvalidArgumentError);
    },
  );

  test("needs a unit, because seconds and milliseconds are both meant by a bare number", () => {
    expect(() => parseDuration("30")).toThrow(/write 30s or 30ms/);
    expect(() => parseDuration("0")).toThrow(InvalidArgumentError);
  });
});
