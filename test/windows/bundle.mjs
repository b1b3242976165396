// Bundles the programs that run as Windows processes: Wine needs some 30 ms to load each file.
import { copyFileSync, cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** The module that locks files, and what it needs to find its binary. */
const nativeLock = [
  ...["fs-native-extensions", "require-addon", "which-runtime"],
  ...["bare-addon-resolve", "bare-module-resolve", "bare-semver"],
];
const entries = [
  "index",
  ...["durable", "locks", "events", "handoff", "objects", "files"].map((room) => `${room}/index`),
];
const listOfTests = "virtual:test-files";

/**
 * Writes the bundles to `directory`, which gets the modules that no bundle can contain, too. The files lie two levels
 * below it, because the parent of a torture looks for the program of its workers beside itself in a tree.
 */
export async function bundlePrograms(directory, testFiles) {
  const output = join(directory, "programs", "all");
  mkdirSync(output, { recursive: true });
  // Read by tests, from where the process runs.
  for (const name of ["package.json", "docs"]) cpSync(join(root, name), join(directory, name), { recursive: true });
  for (const name of nativeLock)
    cpSync(join(root, "node_modules", name), join(directory, "node_modules", name), { recursive: true });
  copyFileSync(
    join(root, "node_modules/@sqlite.org/sqlite-wasm/sqlite-wasm/jswasm/sqlite3.wasm"),
    join(output, "sqlite3.wasm"),
  );
  const common = {
    platform: "node",
    transform: { target: "es2022" },
    external: ["fs-native-extensions"],
    resolve: { alias: { holdfast: join(root, "src/index.ts") } },
    logLevel: "warn",
  };
  const into = { dir: output, format: "esm", chunkFileNames: "[name].js" };
  await build({
    ...common,
    input: { tests: join(root, "test/windows/programs/tests.ts") },
    plugins: [listTests(testFiles)],
    output: { ...into, codeSplitting: false },
  });
  await build({
    ...common,
    input: {
      worker: join(root, "harness/torture/worker.ts"),
      ...Object.fromEntries(["torture", "crowd-member", "crowd-audit"].map((name) => [name, join(root, `test/windows/programs/${name}.ts`)])), // prettier-ignore
    },
    output: into,
  });
  // For processes that tests start with the built package.
  await build({
    ...common,
    input: Object.fromEntries(entries.map((name) => [name, join(root, `src/${name}.ts`)])),
    output: { ...into, dir: join(directory, "dist"), entryFileNames: "[name].js", chunkFileNames: "chunks/[name].js" },
  });
  return output;
}

function listTests(files) {
  const lines = files.map((file) => `${JSON.stringify(file)}: () => import(${JSON.stringify(join(root, file))}),`);
  return {
    name: "list-tests",
    resolveId: (id) => (id === listOfTests ? id : undefined),
    load: (id) => (id === listOfTests ? `export const testFiles = {\n${lines.join("\n")}\n};` : undefined),
  };
}
