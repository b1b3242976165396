import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const scratch = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The code blocks of one language in a page. */
function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map((match) => match[1] ?? "");
}

/** Runs a program as a user's own would run: with the package installed, from what was built. */
function runAsUser(program: string, ...args: string[]): string {
  mkdirSync(join(scratch, "node_modules"), { recursive: true });
  rmSync(join(scratch, "node_modules/holdfast"), { force: true });
  symlinkSync(root, join(scratch, "node_modules/holdfast"));
  writeFileSync(join(scratch, "package.json"), JSON.stringify({ name: "a-user", private: true }));
  const path = join(scratch, "program.mjs");
  writeFileSync(path, program);
  return execFileSync(process.execPath, [path, ...args], { encoding: "utf8", timeout: 30_000 });
}

describe.each(["docs/locks.md", "docs/events.md"])("the programs in %s", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const programs = [...text.matchAll(/^```js\n(.*?)^```\n\n```text\n(.*?)^```$/gms)];

  it.each(programs.map(([, program = "", output = ""], index) => [index + 1, program, output] as const))(
    "print what stands below them: %i",
    (_, program, output) => {
      expect(runAsUser(program, mkdtempSync(join(scratch, "folder-")))).toBe(output);
    },
  );

  it("are all there is", () => {
    expect(programs.length).toBeGreaterThan(3);
    expect(blocksOf(page, "js")).toHaveLength(programs.length);
  });
});

describe("the README", () => {
  it("has an example that sells one ticket after the other", () => {
    const [example = ""] = blocksOf("README.md", "js");
    const folder = join(scratch, "shared");
    expect(runAsUser(example, folder)).toBe("sold ticket 1\n");
    expect(runAsUser(example, folder)).toBe("sold ticket 2\n");
    expect(readFileSync(join(folder, "ticket.txt"), "utf8")).toBe("2\n");
  });

  it("has an example in which two tills sell the last lamp once", () => {
    const [, example = ""] = blocksOf("README.md", "js");
    expect(runAsUser(example, join(scratch, "events"))).toMatch(
      /^(fulfilled, rejected|rejected, fulfilled) of 2 events\n$/,
    );
  });

  it("keeps its examples short", () => {
    const lengths = blocksOf("README.md", "js").map(
      (each) => each.split("\n").filter((line) => line.trim() !== "").length,
    );
    expect(lengths[0]).toBeLessThanOrEqual(15);
    expect(lengths[1]).toBeLessThanOrEqual(20);
  });
});
