import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { formatVersion, packageVersion } from "./version.ts";

describe("the version", () => {
  it("that records carry is the one in package.json", () => {
    const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    expect(packageVersion).toBe((JSON.parse(text) as { version: string }).version);
  });

  it("of the format is a whole number from 1: older releases compare it with theirs", () => {
    expect(Number.isSafeInteger(formatVersion) && formatVersion >= 1).toBe(true);
  });
});
