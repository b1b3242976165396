// Every program in the guides prints what stands below it.
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blocksOf, root, runAsUser, scratch } from "./user-programs.ts";

describe.each([
  ["docs/locks.md", 4],
  ["docs/events.md", 7],
  ["docs/handoff.md", 11],
  ["docs/objects.md", 4],
  ["docs/s3.md", 1],
  ["docs/files.md", 4],
  ["docs/console.md", 1],
  ["docs/telemetry.md", 2],
  ["docs/backup.md", 3],
  ["docs/testing.md", 1],
] as const)("the programs in %s", (page, count) => {
  const text = readFileSync(join(root, page), "utf8");
  const programs = [...text.matchAll(/^```ts\n(.*?)^```\n\n```text\n(.*?)^```$/gms)];

  it.each(programs.map(([, program = "", output = ""], index) => [index + 1, program, output] as const))(
    "print what stands below them: %i",
    (_, program, output) => {
      expect(runAsUser(program, mkdtempSync(join(scratch, "folder-")))).toBe(output);
    },
  );

  it("are all there is", () => {
    expect(programs.length).toBeGreaterThanOrEqual(count);
    expect(blocksOf(page, "ts")).toHaveLength(programs.length);
  });
});
