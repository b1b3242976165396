// The table of sizes in docs/bundlers.md, and what counts as loaded by an import.
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";
import { blocksOf } from "../../tools/generated-block.mjs";
import { filesLoadedBy, isNear } from "../../tools/package-sizes.mjs";

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

it("states the size of every subpath of the package, and the version of it", () => {
  const { exports, version } = JSON.parse(read("package.json")) as {
    exports: Record<string, unknown>;
    version: string;
  };
  const subpaths = Object.keys(exports).filter((subpath) => typeof exports[subpath] === "object");
  const table = blocksOf(read("docs/bundlers.md"))["sizes"] ?? "";
  const named = [...table.matchAll(/^\| `(holdfast[^`]*)`/gm)].map((match) => match[1]);
  expect(named).toEqual(subpaths.map((subpath) => posix.join("holdfast", subpath)));
  expect(table).toContain(`Version ${version} packs`);
});

it("an import at the top is loaded at once, and one in a function or a thread later", () => {
  const files: Record<string, string> = {
    "a.js":
      'import {\n  b,\n} from "./part/b.js";\nexport async function f() {\n  return await import("./later.js");\n}\n',
    "part/b.js": 'export * from "../c.js";\nconst thread = new URL("./thread.js", import.meta.url);\n',
    "c.js": 'import "./a.js";\nimport { readFile } from "node:fs";\n',
    "later.js": "",
    "part/thread.js": "",
  };
  const readOne = (path: string): string => files[path] ?? "";
  expect(filesLoadedBy("a.js", readOne).sort()).toEqual(["a.js", "c.js", "part/b.js"]);
  expect(filesLoadedBy("a.js", readOne, { later: true }).sort()).toEqual(Object.keys(files).sort());
});

it("a table is out of date if a figure is off by more than a tenth, or a row is missing", () => {
  expect(isNear("| `a` | 100 | 1,000 kB |", "| `a`  |  95 | 1,050 kB |")).toBe(true);
  expect(isNear("| `a` | 100 |", "| `a` | 89 |")).toBe(false);
  expect(isNear("Version 0.2.0 packs 2.7 MB.", "Version 0.2.0 packs 2.8 MB.")).toBe(true);
  expect(isNear("Version 0.2.0 packs 2.7 MB.", "Version 0.2.1 packs 2.7 MB.")).toBe(false);
  expect(isNear("| `a` | 100 |", "| `a` | 100 |\n| `b` | 100 |")).toBe(false);
});
