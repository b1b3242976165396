// The share bed picks tests by file and by words of their titles; a renamed test must not slip out
// of it unnoticed.
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { notOnSmb, suites } from "../shares/suites.ts";

const root = new URL("../..", import.meta.url);

describe.each(suites)("the suite $name of the share bed", ({ files, except = [] }) => {
  test("names files that exist", () => {
    expect(files.filter((file) => !existsSync(new URL(file, root)))).toEqual([]);
  });

  test("leaves out tests by words that their titles have", () => {
    const text = textOf(files);
    expect(except.filter((words) => !text.includes(words))).toEqual([]);
  });
});

test("the share bed leaves out on SMB what titles of its suites say", () => {
  const text = textOf(suites.flatMap(({ files }) => files));
  expect(notOnSmb.filter((words) => !text.includes(words))).toEqual([]);
});

/** The text of test files and of the contracts that they import. */
function textOf(files: readonly string[]): string {
  return files.map((file) => textWithImports(new URL(file, root))).join("\n");
}

function textWithImports(file: URL): string {
  const text = readFileSync(file, "utf8");
  const imported = [...text.matchAll(/from "(\.\/[^"]+)"/g)].map(([, path = ""]) =>
    textWithImports(new URL(path, file)),
  );
  return [text, ...imported].join("\n");
}
