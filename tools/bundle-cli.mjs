// Makes the command line in dist/cli a bundle: a command reads a few files instead of some hundred. The library in dist
// stays as it is, one file for each source.
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const directory = fileURLToPath(new URL("../dist/cli", import.meta.url));

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
  external: (id) => !id.startsWith(".") && !isAbsolute(id),
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
// npm does this when it installs the package, and not in a checkout, where `npx holdfast` runs this file too.
chmodSync(join(directory, "bin.cjs"), 0o755);
