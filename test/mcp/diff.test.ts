// The difference that a conflict shows.
import { array, assert, constantFrom, property } from "fast-check";
import { expect, it } from "vitest";
import { diffOf } from "../../src/mcp/diff.ts";

it("shows the lines that differ with some that surround them", () => {
  const before = "1\n2\n3\n4\n5\n6\n7";
  expect(diffOf(before, "1\n2\n3\nfour\n5\n6\n7")).toBe("@@ line 2 @@\n 2\n 3\n-4\n+four\n 5\n 6");
  expect(diffOf("", "new")).toBe("@@ line 1 @@\n-\n+new");
  expect(diffOf("a\nb", "a\nb")).toBe("@@ line 1 @@\n a\n b");
});

it("leads from the one text to the other", () => {
  const text = array(constantFrom("a", "b", "c", ""), { minLength: 1, maxLength: 12 });
  assert(
    property(text, text, (old, now) => {
      const lines = diffOf(old.join("\n"), now.join("\n")).split("\n").slice(1);
      const side = (mark: string): string => lines.filter((line) => line[0] === " " || line[0] === mark).map((line) => line.slice(1)).join("\n"); // prettier-ignore
      expect(old.join("\n")).toContain(side("-"));
      expect(now.join("\n")).toContain(side("+"));
    }),
  );
});

it("is bounded for large texts", () => {
  const lines = (word: string): string => Array.from({ length: 5000 }, (_, index) => `${word} ${index}`).join("\n");
  expect(diffOf(lines("old"), lines("new")).split("\n").length).toBeLessThan(125);
});
