import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { errorCodes } from "../errors.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";

const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");

describe("docs/errors.md states the exit code of", () => {
  for (const code of errorCodes) {
    test(code, () => {
      const section = page.split(/^#{2,3} /m).find((part) => part.startsWith(`${code}\n`));
      expect(section?.match(/^- Exit code: (\d+)$/m)?.[1]).toBe(String(exitCodeOf(code)));
    });
  }
});

test("docs/errors.md lists every exit code and no other", () => {
  const listed = [...page.matchAll(/^\| (\d+) +\|/gm)].map((row) => Number(row[1]));
  expect(listed).toEqual(Object.values(exitCodes));
});
