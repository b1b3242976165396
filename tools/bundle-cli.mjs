// Makes the command line in dist/cli a bundle: a command reads a few files instead of some hundred. The library in dist
// stays as it is, one file for each source.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const directory = fileURLToPath(new URL("../dist/cli", import.meta.url));
const packages = fileURLToPath(new URL("../node_modules", import.meta.url));
/** Optional packages of the library that one command needs: they come with it, so that `npx holdfast` has them. */
const isIncluded = (id) => /^(@modelcontextprotocol\/|zod($|\/))/.test(id);

// The man page is made from the same commands as the help pages, while they are still modules.
const { loadWholeProgram } = await import(`${directory}/program.js`);
const { pagesOf } = await import(`${directory}/reference/command-page.js`);
const { manPage } = await import(`${directory}/reference/man-page.js`);
const program = await loadWholeProgram(process);
writeFileSync(`${directory}/../holdfast.1`, manPage(pagesOf(program), program.version()));

const { output } = await build({
  input: { bin: `${directory}/bin.cjs` },
  platform: "node",
  // Dependencies stay outside: one has a native module, one a .wasm file, and an audit sees what is installed.
  external: (id) => !id.startsWith(".") && !isAbsolute(id) && !isIncluded(id),
  // CommonJS: Node reads it by calls that block, and ES modules through libuv's pool, one trip after the other.
  output: {
    format: "cjs",
    comments: false,
    entryFileNames: "[name].cjs",
    chunkFileNames: "chunks/[name]-[hash].cjs",
  },
  write: false,
});
for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
mkdirSync(join(directory, "chunks"));
for (const { fileName, code } of output) writeFileSync(join(directory, fileName), code);
writeFileSync(join(directory, "licenses.txt"), licensesOf(output));
// npm does this when it installs the package, and not in a checkout, where `npx holdfast` runs this file too.
chmodSync(join(directory, "bin.cjs"), 0o755);

/** The names, versions and licences of the packages whose code is in the bundle. */
function licensesOf(chunks) {
  const ids = chunks.flatMap(({ moduleIds = [] }) => moduleIds).filter((id) => id.startsWith(packages));
  const names = ids.map((id) => /^(@[^/]+\/)?[^/]+/.exec(id.slice(packages.length + 1))[0]);
  const texts = [...new Set(names)]
    .sort((a, b) => a.localeCompare(b))
    .map((name) => {
      const { version, license } = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
      const text = readFileSync(join(packages, name, "LICENSE"), "utf8");
      return `${name} ${version}, ${license}\n\n${text.trim()}\n`;
    });
  return `The command line contains code of these packages.\n\n${texts.join(`\n${"-".repeat(72)}\n\n`)}`;
}
