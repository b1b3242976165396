// Plants violations and expects the linter to name each: a rule that matches nothing looks like a
// clean tree.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

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
  {
    title: "format importing the whole of node:crypto",
    file: "format/checksum.ts",
    code: `export * from "node:crypto";`,
    rule: "eslint(no-restricted-imports)",
  },
  {
    title: "format importing randomBytes",
    file: "format/nonce.ts",
    code: `export { randomBytes } from "node:crypto";`,
    rule: "eslint(no-restricted-imports)",
  },
  {
    title: "durable naming a type by an import() expression",
    file: "durable/type-expression.ts",
    code: `export type Log = import("../events/log.ts").Log;`,
    rule: "typescript(consistent-type-imports)",
  },
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
  { title: "format importing crc32", file: "format/crc.ts", code: `export { crc32 } from "node:zlib";` },
  { title: "format importing createHash", file: "format/hash.ts", code: `export { createHash } from "node:crypto";` },
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
  directory = mkdtempSync(join(tmpdir(), "holdfast-linter-"));
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
