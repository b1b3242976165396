// Plants violations of the layers and expects the linter to name each: a pattern that matches nothing looks like a clean tree.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

const imports = "eslint(no-restricted-imports)";
const globals = "eslint(no-restricted-globals)";
const properties = "eslint(no-restricted-properties)";

interface Plant {
  readonly title: string;
  /** In src/; each plant is a file of its own. */
  readonly file: string;
  readonly code: string;
  /** Undefined: this must pass. */
  readonly rule?: string;
}

const refused: readonly Required<Plant>[] = [
  importing("errors importing a port", "errors.ts", "./ports/disk.ts"),
  importing("common importing a value of errors", "common.ts", "./errors.ts"),
  importing("a port interface importing a real port", "ports/disk.ts", "./node/disk.ts"),
  importing("a port interface importing node:fs", "ports/watch.ts", "node:fs"),
  importing("a port interface importing format", "ports/clock.ts", "../format/record.ts"),
  importing("the memory disk importing a real port", "ports/memory/disk.ts", "../node/disk.ts"),
  importing("the memory disk importing node:fs", "ports/memory/tree.ts", "node:fs"),
  importing("a real port importing durable", "ports/node/disk.ts", "../../durable/chain-slot.ts"),
  importing("a real port importing a package that is not listed", "ports/node/clock.ts", "left-pad"),

  importing("format importing durable", "format/record.ts", "../durable/publish.ts"),
  importing("format importing a port", "format/id.ts", "../ports/random.ts"),
  importing("format importing node:fs", "format/name.ts", "node:fs"),
  importing("format importing the whole of node:crypto", "format/checksum.ts", "node:crypto"),
  {
    title: "format importing randomBytes",
    file: "format/nonce.ts",
    code: `export { randomBytes } from "node:crypto";`,
    rule: imports,
  },

  importing("durable importing a real port", "durable/publish.ts", "../ports/node/host.ts"),
  importing("durable importing the memory disk", "durable/gate.ts", "../ports/memory/disk.ts"),
  importing("durable importing locks", "durable/chain.ts", "../locks/table.ts"),
  importing("durable importing the store", "durable/store-user.ts", "../store.ts"),
  importing("durable importing the index above it", "durable/index-user.ts", "../index.ts"),
  importing("durable importing its own entry point", "durable/entry-user.ts", "./index.ts"),
  importing("durable importing testing", "durable/testing-user.ts", "../testing/index.ts"),
  importing("durable importing node:fs", "durable/fs-user.ts", "node:fs"),
  importing("durable importing node:fs/promises", "durable/fs-promises-user.ts", "node:fs/promises"),
  importing("durable importing fs without its prefix", "durable/bare-fs-user.ts", "fs"),
  importing("durable importing node:timers/promises", "durable/timers-user.ts", "node:timers/promises"),
  importing("durable importing node:worker_threads", "durable/worker-user.ts", "node:worker_threads"),
  importing("durable importing node:child_process", "durable/child-user.ts", "node:child_process"),
  importing("durable importing fs-native-extensions", "durable/native-user.ts", "fs-native-extensions"),
  importing("a folder inside durable importing events", "durable/parts/part.ts", "../../events/log.ts"),
  {
    title: "durable importing only a type of a real port",
    file: "durable/type-user.ts",
    code: `export type { NodeDisk } from "../ports/node/disk.ts";`,
    rule: imports,
  },
  {
    title: "durable importing node:fs when it is called",
    file: "durable/lazy-user.ts",
    code: `export const load = () => import("node:fs");`,
    rule: imports,
  },
  {
    title: "durable naming a type by an import() expression",
    file: "durable/type-expression.ts",
    code: `export type Log = import("../events/log.ts").Log;`,
    rule: "typescript(consistent-type-imports)",
  },

  importing("locks importing events", "locks/table.ts", "../events/log.ts"),
  importing("locks importing doctor", "locks/doctor-user.ts", "../doctor/probe.ts"),
  importing("locks importing durable by its entry point", "locks/entry-user.ts", "../durable/index.ts"),
  importing("doctor importing locks", "doctor/probe.ts", "../locks/table.ts"),
  importing("doctor importing a real port", "doctor/fs-probe.ts", "../ports/node/disk.ts"),
  importing("events importing handoff", "events/log.ts", "../handoff/ticket.ts"),
  importing("handoff importing objects", "handoff/box.ts", "../objects/version.ts"),
  importing("objects importing files", "objects/bucket.ts", "../files/move.ts"),
  importing("files importing events", "files/tree.ts", "../events/reader.ts"),
  importing("a capability importing a real port", "events/segment.ts", "../ports/node/disk.ts"),
  importing("an entry point importing a real port past ports.ts", "durable/index.ts", "../ports/node/disk.ts"),
  importing("an entry point importing a room above its own", "locks/index.ts", "../events/log.ts"),
  importing("an entry point importing testing", "events/index.ts", "../testing/index.ts"),
  importing("the store importing the command line", "store.ts", "./cli/main.ts"),
  importing("the index importing testing", "index.ts", "./testing/index.ts"),

  importing("the command line importing the inside of durable", "cli/main.ts", "../durable/chain.ts"),
  importing("a command importing the inside of durable", "cli/commands/lock.ts", "../../durable/chain.ts"),
  importing("the command line importing errors past the index", "cli/output.ts", "../errors.ts"),
  importing("the command line importing testing", "cli/bench.ts", "../testing/index.ts"),
  importing("the command line importing a real port", "cli/disk.ts", "../ports/node/ports.ts"),
  importing("the command line importing node:fs", "cli/commands/init.ts", "node:fs"),
  importing("the command line importing node:fs/promises", "cli/commands/read.ts", "node:fs/promises"),
  importing("the command line importing the package by its name", "cli/self.ts", "holdfast/testing"),
  importing("the S3 front importing the inside of objects", "s3/router.ts", "../objects/bucket.ts"),
  importing("the console importing the store past the index", "console/server.ts", "../store.ts"),
  importing("testing importing the command line", "testing/main.ts", "../cli/main.ts"),
  importing("testing importing the index", "testing/explorer.ts", "../index.ts"),

  using("durable using Date.now", "durable/now.ts", "Date.now()", properties),
  using("durable using Math.random", "durable/random.ts", "Math.random()", properties),
  using("durable using AbortSignal.timeout", "durable/abort.ts", "AbortSignal.timeout(1)", properties),
  using("durable using process.hrtime", "durable/hrtime.ts", "process.hrtime.bigint()", properties),
  using("durable using process.kill", "durable/kill.ts", "process.kill(1, 0)", properties),
  using("durable using process.pid", "durable/pid.ts", "process.pid", properties),
  using("durable using setTimeout", "durable/timeout.ts", "setTimeout(String, 1)", globals),
  using("durable using setInterval", "durable/interval.ts", "setInterval(String, 1)", globals),
  using("durable using setImmediate", "durable/immediate.ts", "setImmediate(String)", globals),
  using(
    "durable using globalThis.setTimeout",
    "durable/global-timeout.ts",
    "globalThis.setTimeout(String, 1)",
    globals,
  ),
  using("durable using performance.now", "durable/performance.ts", "performance.now()", globals),
  using("durable using crypto.randomUUID", "durable/uuid.ts", "crypto.randomUUID()", globals),
  using("format using Date.now", "format/now.ts", "Date.now()", properties),
  using("a port interface using Date.now", "ports/now.ts", "Date.now()", properties),
  using("the memory disk using Date.now", "ports/memory/now.ts", "Date.now()", properties),
  using("events using setTimeout", "events/timeout.ts", "setTimeout(String, 1)", globals),
  using("an entry point using Math.random", "objects/index.ts", "Math.random()", properties),

  using("durable printing", "durable/print.ts", `console.log("here")`, "eslint(no-console)"),
  using("the S3 front printing", "s3/print.ts", `console.log("here")`, "eslint(no-console)"),
  {
    title: "a default export",
    file: "durable/default.ts",
    code: `export default 1;`,
    rule: "import(no-default-export)",
  },
  {
    title: "two files that need each other",
    file: "durable/cycle-a.ts",
    code: `import { b } from "./cycle-b.ts";\nexport const a = () => b();`,
    rule: "import(no-cycle)",
  },
  {
    title: "two files that need each other, seen from the other",
    file: "durable/cycle-b.ts",
    code: `import { a } from "./cycle-a.ts";\nexport const b = (): unknown => a();`,
    rule: "import(no-cycle)",
  },
  {
    title: "a comparison by ==",
    file: "durable/equal.ts",
    code: `export const same = (a: number, b: number) => a == b;`,
    rule: "eslint(eqeqeq)",
  },
  {
    title: "a forgotten promise",
    file: "durable/floating.ts",
    code: `export async function one() {}\nexport function two() {\n  one();\n}`,
    rule: "typescript(no-floating-promises)",
  },
  {
    title: "a forgotten promise in a test",
    file: "durable/floating.test.ts",
    code: `async function one() {}\none();`,
    rule: "typescript(no-floating-promises)",
  },
  {
    title: "a test that keeps the others from running",
    file: "durable/focused.test.ts",
    code: `import { expect, test } from "vitest";\ntest.only("one is one", () => {\n  expect(1).toBe(1);\n});`,
    rule: "vitest(no-focused-tests)",
  },
  {
    title: "a promise as a condition",
    file: "durable/misused.ts",
    code: `async function one() {\n  return true;\n}\nexport const two = () => (one() ? 1 : 2);`,
    rule: "typescript(no-misused-promises)",
  },
  {
    title: "an await of what is no promise",
    file: "durable/thenable.ts",
    code: `export async function one(n: number) {\n  await n;\n}`,
    rule: "typescript(await-thenable)",
  },
];

const accepted: readonly Plant[] = [
  allowed("a port interface importing errors", "ports/host.ts", "../errors.ts"),
  allowed("the memory disk importing a port interface", "ports/memory/ok.ts", "../disk.ts"),
  allowed("a real port importing node:fs/promises", "ports/node/fs.ts", "node:fs/promises"),
  allowed("a real port importing fs-native-extensions", "ports/node/os-lock.ts", "fs-native-extensions"),
  allowed("format importing errors", "format/version.ts", "../errors.ts"),
  { title: "format importing crc32", file: "format/crc.ts", code: `export { crc32 } from "node:zlib";` },
  { title: "format importing createHash", file: "format/hash.ts", code: `export { createHash } from "node:crypto";` },
  allowed("durable importing a port interface", "durable/ok-port.ts", "../ports/disk.ts"),
  allowed("durable importing format", "durable/ok-format.ts", "../format/record.ts"),
  allowed("durable importing a folder inside itself", "durable/ok-folder.ts", "./parts/ok.ts"),
  allowed("a folder inside durable importing its room", "durable/parts/ok.ts", "../ground.ts"),
  allowed("a folder inside durable importing a port interface", "durable/parts/port.ts", "../../ports/disk.ts"),
  allowed("doctor importing durable", "doctor/ok.ts", "../durable/publish.ts"),
  allowed("the entry point of doctor binding the real ports", "doctor/index.ts", "../ports/node/ports.ts"),
  allowed("locks importing durable", "locks/ok.ts", "../durable/publish.ts"),
  allowed("events importing locks", "events/ok.ts", "../locks/path-locks.ts"),
  allowed("files importing handoff", "files/ok.ts", "../handoff/box.ts"),
  allowed("the entry point of files binding the real ports", "files/index.ts", "../ports/node/ports.ts"),
  allowed("the entry point of handoff binding the memory disk", "handoff/index.ts", "../ports/memory/disk.ts"),
  allowed("the command line importing the index", "cli/ok.ts", "../index.ts"),
  allowed("the command line importing a subpath", "cli/ok-subpath.ts", "../durable/index.ts"),
  allowed("the command line importing commander", "cli/ok-commander.ts", "commander"),
  allowed("the command line starting a child process", "cli/ok-child.ts", "node:child_process"),
  allowed("a command importing the index", "cli/commands/ok.ts", "../../index.ts"),
  allowed("a command importing a subpath", "cli/commands/ok-subpath.ts", "../../locks/index.ts"),
  allowed("a command importing its front", "cli/commands/ok-front.ts", "../exit-codes.ts"),
  allowed("testing importing the inside of durable", "testing/ok.ts", "../durable/chain.ts"),
  allowed("a scenario importing the inside of durable", "testing/scenarios/ok.ts", "../../durable/chain.ts"),
  allowed("testing importing node:fs", "testing/ok-fs.ts", "node:fs"),
  allowed("a test importing anything", "durable/ok-import.test.ts", "../ports/node/disk.ts"),
  { title: "a test using Date.now", file: "durable/ok-now.test.ts", code: `export const at = Date.now();` },
  { title: "a real port using Date.now", file: "ports/node/now.ts", code: `export const at = () => Date.now();` },
  { title: "the command line using timers", file: "cli/ok-timer.ts", code: `setTimeout(String, 1);` },
  { title: "the command line printing", file: "cli/ok-print.ts", code: `console.log("here");` },
  {
    title: "testing using Math.random",
    file: "testing/ok-random.ts",
    code: `export const chance = () => Math.random();`,
  },
  {
    title: "a test that expects through a function of its own, and only sometimes",
    file: "durable/ok-expect.test.ts",
    code: [
      `import { expect, test } from "vitest";`,
      `const check = (n: number) => {\n  if (n > 0) expect(n).toBe(1);\n};`,
      `test("a check may be a function", () => {\n  check(1);\n});`,
      `test("a failure may be looked at", () => {\n  try {\n    check(2);\n  } catch (error) {\n    expect(error).toBeDefined();\n  }\n});`,
    ].join("\n"),
  },
  {
    title: "durable making a Date of a known time",
    file: "durable/ok-date.ts",
    code: `export const at = (wallMs: number) => new Date(wallMs);`,
  },
];

let directory: string;
let status: number | null;
const found = new Map<string, Set<string>>();

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-layers-"));
  copyFileSync(join(root, ".oxlintrc.json"), join(directory, ".oxlintrc.json"));
  const compilerOptions = { target: "es2022", lib: ["es2023"], module: "nodenext", strict: true, types: [] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  for (const { file, code } of [...refused, ...accepted]) {
    const path = join(directory, "src", file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${code}\n`);
  }
  const binary = (name: string) => join(root, "node_modules", ".bin", name);
  // One run for all plants: starting the type checker is what costs.
  const run = spawnSync(binary("oxlint"), ["--type-aware", "--format", "json", "src"], {
    cwd: directory,
    encoding: "utf8",
    env: { ...process.env, OXLINT_TSGOLINT_PATH: binary("tsgolint") },
    maxBuffer: 64 * 1024 * 1024,
  });
  status = run.status;
  const report = parseReport(run.stdout, run.stderr);
  for (const { filename, code } of report.diagnostics) {
    const file = filename.replaceAll("\\", "/").replace(/^src\//, "");
    found.set(file, (found.get(file) ?? new Set()).add(code));
  }
});

afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

test("the linter fails a tree with violations", () => {
  expect(status).toBe(1);
});

test("every plant has a file of its own", () => {
  const files = [...refused, ...accepted].map((plant) => plant.file);
  expect(files.filter((file, i) => files.indexOf(file) !== i)).toEqual([]);
});

describe("the linter refuses", () => {
  for (const { title, file, rule } of refused) {
    test(title, () => {
      expect([...(found.get(file) ?? [])]).toEqual([rule]);
    });
  }
});

describe("the linter accepts", () => {
  for (const { title, file } of accepted) {
    test(title, () => {
      expect([...(found.get(file) ?? [])]).toEqual([]);
    });
  }
});

function importing(title: string, file: string, from: string): Required<Plant> {
  return { title, file, code: `export * from "${from}";`, rule: imports };
}

function allowed(title: string, file: string, from: string): Plant {
  return { title, file, code: `export * from "${from}";` };
}

function using(title: string, file: string, expression: string, rule: string): Required<Plant> {
  return { title, file, code: `export const planted = () => ${expression};`, rule };
}

interface Report {
  readonly diagnostics: readonly { readonly filename: string; readonly code: string }[];
}

function parseReport(stdout: string, stderr: string): Report {
  try {
    return JSON.parse(stdout) as Report;
  } catch (cause) {
    throw new Error(`oxlint gave no report: ${stdout.slice(0, 500)} ${stderr.slice(0, 500)}`, { cause });
  }
}
