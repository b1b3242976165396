// Projects that use the package in another way than ours: under jest, from CommonJS, from a bundle, with other settings of
// TypeScript. All of docs/bundlers.md.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import {
  createProgram,
  flattenDiagnosticMessageText,
  getPreEmitDiagnostics,
  ModuleKind,
  ModuleResolutionKind,
  ScriptTarget,
  type CompilerOptions,
} from "typescript";
import { describe, expect, it } from "vitest";
import { blocksOf, root, scratch } from "./user-programs.ts";

/** A project with the package installed. */
function makeProject(manifest: object, files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(scratch, "project-"));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(root, join(directory, "node_modules/holdfast"));
  symlinkSync(join(root, "node_modules/@types"), join(directory, "node_modules/@types"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "a-user", private: true, ...manifest }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

/** Every part of a store on a real folder, and the contract of the real disk. */
const jestProgram = `
import { mkdtempSync } from "node:fs";
import { isHoldfastError, openStore } from "holdfast";
import { diskContract } from "holdfast/testing";
import { openNodeDisk } from ${JSON.stringify(join(root, "dist/ports/node/disk/disk.js"))};

const folder = () => mkdtempSync(process.env.SCRATCH + "/jest-");

test("errors of Node are of another class here", () => {
  let thrown;
  try { process.chdir("/nowhere/at/all"); } catch (error) { thrown = error; }
  expect(thrown.code).toBe("ENOENT");
  expect(thrown instanceof Error).toBe(false);
});

test("every part of a store opens and works", async () => {
  const store = await openStore(folder());
  const log = await store.events("sales");
  await log.append({ type: "Sold", data: 1 });
  expect(await log.head()).toBe(1);
  const box = await store.handoff("box");
  await box.publish({ "a.txt": "a" }, { key: "a" });
  for await (const delivery of box.deliveries()) {
    expect(await delivery.text("a.txt")).toBe("a");
    await delivery.ack();
    break;
  }
  await (await store.locks()).withLock("a", async () => undefined);
  const bucket = await (await store.objects()).createBucket("photos");
  await bucket.put("tom", "miaow");
  const failure = await bucket.head("ada").catch((error) => error);
  expect(isHoldfastError(failure, "NO_SUCH_KEY")).toBe(true);
  const files = await store.files();
  await files.write("plan.md", "paint the shelf");
  await files.settled();
  expect((await files.search("shelf")).map(({ path }) => path)).toEqual(["plan.md"]);
  await store.close();
});

describe("the real disk", () => {
  for (const check of diskContract(async () => {
    const root = folder();
    return { disk: await openNodeDisk(root), root };
  })) test(check.name, check.run);
});
`;

describe("a project with jest", () => {
  it("opens every part of a store on a real folder, whose errors are of another class there", () => {
    const manifest = { type: "module", jest: { testMatch: ["**/*.test.mjs"], transform: {} } };
    const cwd = makeProject(manifest, { "store.test.mjs": jestProgram });
    const jest = spawnSync(
      process.execPath,
      ["--experimental-vm-modules", join(root, "node_modules/jest/bin/jest.js"), "--json", "--watchman=false"],
      { cwd, encoding: "utf8", timeout: 120_000, env: { ...process.env, SCRATCH: scratch } },
    );
    const report = JSON.parse(jest.stdout) as { numPassedTests: number; numFailedTests: number; testResults: unknown };
    expect(report, JSON.stringify(report.testResults, null, 2)).toMatchObject({ numFailedTests: 0, success: true });
    expect(report.numPassedTests).toBeGreaterThan(10);
  });

  it("in CommonJS loads the package with import()", () => {
    const [, program = ""] = blocksOf("docs/bundlers.md", "js");
    const [settings = ""] = blocksOf("docs/bundlers.md", "json");
    const cwd = makeProject(JSON.parse(settings) as object, { "order.test.js": program });
    symlinkSync(join(root, "node_modules/jest"), join(cwd, "node_modules/jest"));
    const jest = spawnSync("npm", ["test", "--", "--watchman=false"], { cwd, encoding: "utf8", timeout: 120_000 });
    expect(jest.stderr).toContain("1 passed, 1 total");
    expect(jest.status).toBe(0);
  });
});

describe("a project in CommonJS", () => {
  it("requires the package", () => {
    const [program = ""] = blocksOf("docs/bundlers.md", "js");
    const cwd = makeProject({}, { "program.cjs": program });
    expect(execFileSync(process.execPath, ["program.cjs"], { cwd, encoding: "utf8" })).toBe("1 event\n");
  });
});

describe("a project in TypeScript", () => {
  const importing = `
    import { openStore, isHoldfastError } from "holdfast";
    import { openEvents } from "holdfast/events";
    export async function main(): Promise<void> {
      await using store = await openStore("memory:");
      const log = await store.events("sales");
      await log.append({ type: "Sold", data: { sku: "lamp" } });
      console.log(await log.head(), typeof openEvents, isHoldfastError(undefined));
    }`;
  const loading = `
    export async function main(): Promise<void> {
      const { openStore } = await import("holdfast");
      await (await openStore("memory:")).close();
    }`;

  function complaintsOf(type: "module" | "commonjs", program: string, options: CompilerOptions): string[] {
    const cwd = makeProject({ type }, { "program.ts": program });
    const compiled = createProgram([join(cwd, "program.ts")], {
      strict: true,
      noEmit: true,
      target: ScriptTarget.ES2022,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
      ...options,
    });
    return getPreEmitDiagnostics(compiled).map(
      ({ code, messageText }) => `TS${code}: ${flattenDiagnosticMessageText(messageText, " ")}`,
    );
  }

  it.each([
    ["module", { module: ModuleKind.NodeNext }],
    ["module", { module: ModuleKind.Node16 }],
    ["commonjs", { module: ModuleKind.NodeNext }],
    ["module", { module: ModuleKind.ESNext, moduleResolution: ModuleResolutionKind.Bundler }],
  ] as const)("of type %s compiles with %j", (type, options) => {
    expect(complaintsOf(type, importing, options)).toEqual([]);
  });

  it("of type commonjs with node16 compiles if it loads the package by import()", () => {
    const options = { module: ModuleKind.Node16 };
    expect(complaintsOf("commonjs", loading, options)).toEqual([]);
    expect(complaintsOf("commonjs", importing, options)[0]).toMatch(/^TS1479: /);
  });
});

describe("a bundle", () => {
  const program = `
    import { openFiles } from "holdfast/files";
    const files = await openFiles(process.argv[2], { work: false });
    await files.write("plan.md", "paint the shelf");
    try {
      await files.rebuildIndex();
      console.log((await files.search("shelf")).map(({ path }) => path).join());
    } catch (error) {
      console.log(error.code + ": " + error.message);
    }
    await files.close();`;

  it("searches with sqlite3.wasm beside it, and names that file where it is missing", async () => {
    const cwd = makeProject({ type: "module" }, { "app.js": program });
    const bundle = await rolldown({
      input: join(cwd, "app.js"),
      external: ["fs-native-extensions"],
      platform: "node",
      logLevel: "silent",
    });
    const deploy = join(cwd, "deploy");
    await bundle.write({ dir: deploy, format: "esm" });
    await bundle.close();
    // What `npm install fs-native-extensions` puts there; nothing else of ours is in reach.
    symlinkSync(join(root, "node_modules"), join(deploy, "node_modules"));
    const run = (): string =>
      execFileSync(process.execPath, [join(deploy, "app.js"), mkdtempSync(join(scratch, "tree-"))], {
        encoding: "utf8",
        timeout: 60_000,
        stdio: ["ignore", "pipe", "ignore"],
      });
    expect(run()).toMatch(
      /^INDEX_FAILED: .*put the file sqlite3\.wasm of the package @sqlite\.org\/sqlite-wasm beside it/,
    );
    const wasm = "@sqlite.org/sqlite-wasm/sqlite-wasm/jswasm/sqlite3.wasm";
    cpSync(join(root, "node_modules", wasm), join(deploy, "sqlite3.wasm"));
    expect(run()).toBe("plan.md\n");
    rmSync(deploy, { recursive: true, force: true });
  });
});
