// States the size of the package, and what each subpath loads, in docs/bundlers.md. The figures come from the built
// package: `npm pack` lists its files, and the imports in them say what follows what.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { blocksOf, withBlocks, writeBlocks } from "./generated-block.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = join(root, "docs/bundlers.md");
/** A figure of the page may differ by this much from the package before `--check` fails. */
const toleranceMax = 0.1;

const staticImport = /^(?:import|export)\s*(?:[\w*{][^"';()]*?from\s*)?"(\.{1,2}\/[^"]+)"/gm;
const laterImport = /\bimport\(\s*"(\.{1,2}\/[^"]+)"\s*\)|new URL\(\s*"(\.{1,2}\/[^"]+\.js)"/g;

/** `entry` and all files that follow from it, by imports at the top; with `later`, also by those that run later. */
export function filesLoadedBy(entry, read, { later = false } = {}) {
  const found = new Set();
  const visit = (path) => {
    if (found.has(path)) return;
    found.add(path);
    const text = read(path);
    const patterns = later ? [staticImport, laterImport] : [staticImport];
    for (const pattern of patterns)
      for (const [, first, second] of text.matchAll(pattern)) visit(posix.join(posix.dirname(path), first ?? second));
  };
  visit(entry);
  return [...found];
}

function describePackage() {
  const [packed] = JSON.parse(
    execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }),
  );
  const sizes = new Map(packed.files.map(({ path, size }) => [path, size]));
  const read = (path) => {
    if (!sizes.has(path)) throw new Error(`The package does not contain ${path}.`);
    return readFileSync(join(root, path), "utf8");
  };
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const rows = Object.entries(exports)
    .filter(([, target]) => typeof target === "object")
    .map(([subpath, target]) => {
      const entry = posix.normalize(target.default);
      const figuresOf = (files) => [files.length, sum(files.map((path) => sizes.get(path)))];
      return [
        `\`${posix.join("holdfast", subpath)}\``,
        ...figuresOf(filesLoadedBy(entry, read)),
        ...figuresOf(filesLoadedBy(entry, read, { later: true })),
      ];
    });
  return { packed, rows };
}

function printSizes({ packed, rows }) {
  const kilobytes = (bytes) => Math.round(bytes / 1000).toLocaleString("en");
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  const lines = rows.map(
    ([name, files, bytes, allFiles, allBytes]) =>
      `| ${name} | ${files} | ${kilobytes(bytes)} kB | ${allFiles} | ${kilobytes(allBytes)} kB |`,
  );
  return `Version ${packed.version} packs ${megabytes(packed.size)} MB, and unpacks to ${megabytes(packed.unpackedSize)} MB in ${packed.entryCount.toLocaleString("en")} files.

| import | files at once | size | with all that may load later | size |
| --- | ---: | ---: | ---: | ---: |
${lines.join("\n")}`;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** A number that stands alone: not a version, and not part of a name. */
const figure = /(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)/g;
const figuresIn = (text) => [...text.matchAll(figure)].map(([number]) => Number(number.replaceAll(",", "")));

/** True if both texts have the same words, and figures that differ by at most the tolerance. */
export function isNear(one, other) {
  const words = (text) => text.replaceAll(figure, "#").replaceAll(/[\s:-]+/g, " ");
  const [first, second] = [figuresIn(one), figuresIn(other)];
  return (
    words(one) === words(other) &&
    first.every((number, index) => Math.abs(number - second[index]) <= toleranceMax * Math.max(number, second[index]))
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sizes = printSizes(describePackage());
  if (process.argv.includes("--check")) {
    const text = readFileSync(page, "utf8");
    const expected = blocksOf(await withBlocks(text, { sizes })).sizes;
    if (!isNear(blocksOf(text).sizes, expected)) {
      console.error(`docs/bundlers.md is out of date: run node tools/package-sizes.mjs.\n\n${expected}`);
      process.exit(1);
    }
  } else await writeBlocks(page, { sizes });
}
