import { InvalidArgumentError } from "commander";
import { describe, expect, test } from "vitest";
import { parseDuration } from "./duration.ts";

describe("a duration", () => {
  test.each([
    ["30s", 30_000],
    ["500ms", 500],
    ["2m", 120_000],
    ["250", 250],
    ["0", 0],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(["", "s", "-1s", "1.5s", "5 s", "5S", "1h", "1e3", "Infinity", "0x10", "9999999999999", "30s30"])(
    "is not written %j",
    (text) => {
      expect(() => parseDuration(text)).toThrow(InvalidArgumentError);
    },
  );
});
