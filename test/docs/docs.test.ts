import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import {
  createProgram,
  flattenDiagnosticMessageText,
  getPreEmitDiagnostics,
  ModuleKind,
  ModuleResolutionKind,
  ScriptTarget,
} from "typescript";
import { describe, expect, it } from "vitest";
import { blocksOf, root, runAsUser, scratch } from "./user-programs.ts";

describe("the README", () => {
  const [store = "", fiveMinutes = "", handoff = "", objects = "", files = "", storeLock = "", ticket = ""] = blocksOf(
    "README.md",
    "ts",
  );

  it("has an example of a store with an event log and a lock", () => {
    expect(runAsUser(store, join(scratch, "shop"))).toMatch(
      /^writing the report under fence \d+\n1 event, 1 process\n$/,
    );
  });

  it("has an example in which two tills sell the last lamp once", () => {
    expect(runAsUser(fiveMinutes, join(scratch, "events"))).toMatch(
      /^(fulfilled, rejected|rejected, fulfilled) of 2 events\n$/,
    );
  });

  it("has an example of a hand-off in which an invoice that was published twice is booked once", () => {
    expect(runAsUser(handoff, join(scratch, "invoices"))).toBe(
      "booking invoice/R-7: <total>119.00</total>, published twice: true\n",
    );
  });

  it("has an example of an object store in which every put is a version and a condition has one winner", () => {
    expect(runAsUser(objects, join(scratch, "objects"))).toBe("3 versions; one winner\n");
  });

  it("has an example of a tree of files that is moved and searched", () => {
    expect(runAsUser(files, join(scratch, "team"))).toBe("archive/notes/plan.md\n");
  });

  it("has an example of a store lock", () => {
    expect(runAsUser(storeLock, join(scratch, "visits"))).toBe("wrote alone\n");
  });

  it("has an example that sells one ticket after the other", () => {
    const folder = join(scratch, "shared");
    expect(runAsUser(ticket, folder)).toBe("sold ticket 1\n");
    expect(runAsUser(ticket, folder)).toBe("sold ticket 2\n");
    expect(readFileSync(join(folder, "ticket.txt"), "utf8")).toBe("2\n");
  });

  it("keeps its examples short", () => {
    const lengths = blocksOf("README.md", "ts").map(
      (each) => each.split("\n").filter((line) => line.trim() !== "").length,
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(21);
  });
});

it.each(readdirSync(join(root, "examples/events")))("the example %s runs where it is installed", (name) => {
  const installed = join(scratch, "installed/node_modules");
  mkdirSync(installed, { recursive: true });
  if (!existsSync(join(installed, "holdfast"))) symlinkSync(root, join(installed, "holdfast"));
  const program = join(installed, "holdfast/dist/examples/events", name.replace(/ts$/, "js"));
  expect(execFileSync(process.execPath, [program], { encoding: "utf8", timeout: 30_000 })).not.toBe("");
});

/** As a user's strict project sees the package that was built. */
function complaintsOf(programs: Readonly<Record<string, string>>): string[] {
  const directory = mkdtempSync(join(scratch, "types-"));
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(root, join(directory, "node_modules/holdfast"));
  for (const name of ["@types", "@opentelemetry", "pino"])
    symlinkSync(join(root, "node_modules", name), join(directory, "node_modules", name));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  const files = Object.entries(programs).map(([name, text]) => {
    const path = join(directory, `${name.replaceAll(/\W/g, "-")}.ts`);
    writeFileSync(path, text);
    return path;
  });
  const program = createProgram(files, {
    strict: true,
    noEmit: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    target: ScriptTarget.ES2022,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    module: ModuleKind.NodeNext,
    moduleResolution: ModuleResolutionKind.NodeNext,
    types: ["node"],
  });
  return getPreEmitDiagnostics(program).map(
    ({ file, messageText }) => `${file?.fileName ?? ""}: ${flattenDiagnosticMessageText(messageText, " ")}`,
  );
}

it("every sample in the README and the guides is TypeScript that compiles", () => {
  const pages = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)].filter((page) =>
    page.endsWith(".md"),
  );
  const samples = pages.flatMap((page) =>
    blocksOf(page, "ts").map((text, index) => [`${page}-${index + 1}`, `${text}\nexport {};\n`] as const),
  );
  // Only the page on CommonJS has JavaScript, which projects.deep.ts runs.
  const inJavaScript = pages.filter((page) => blocksOf(page, "(js|javascript)").length > 0);
  expect(inJavaScript).toEqual(["docs/bundlers.md"]);
  expect(samples.length).toBeGreaterThan(10);
  expect(complaintsOf(Object.fromEntries(samples))).toEqual([]);
});

it("a page whose programs import another package says how to install it", () => {
  const pages = ["docs", "docs/recipes"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `${folder}/${name}`),
  );
  const imported = pages.flatMap((page) =>
    blocksOf(page, "(?:ts|js)")
      .flatMap((program) => [...program.matchAll(/(?:from|import\() ?"([^".][^"]*)"/g)])
      .map(([, specifier = ""]) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "")
      .filter((name) => name !== "holdfast" && !name.startsWith("node:"))
      .map((name) => ({ page, name })),
  );
  expect(imported.length).toBeGreaterThan(5);
  const unexplained = imported.filter(
    ({ page, name }) => !new RegExp(`npm install [^\n\`]*${name}\\b`).test(readFileSync(join(root, page), "utf8")),
  );
  expect(unexplained).toEqual([]);
});

it("the types of a hand-off are those that programs are written against", () => {
  const program = readFileSync(join(root, "test/docs/handoff-types.ts"), "utf8");
  expect(complaintsOf({ "handoff-types": program })).toEqual([]);
  const changed = program.replace("readonly duplicate: boolean", "readonly duplicate: string");
  expect(complaintsOf({ changed })).toHaveLength(1);
});

it("the guide of the hand-off says how long the programs in Python and shell are", () => {
  const linesOf = (...names: string[]): number =>
    names.flatMap((name) =>
      readFileSync(join(root, "examples/handoff", name), "utf8")
        .trimEnd()
        .split("\n"),
    ).length;
  const told = /a producer has about (\d+) lines of Python or (\d+) of shell, a consumer about (\d+) or (\d+)/.exec(
    readFileSync(join(root, "docs/handoff.md"), "utf8"),
  );
  const lengths = ["producer", "consumer"].flatMap((program) =>
    ["py", "sh"].map((suffix) => linesOf(`box.${suffix}`, `${program}.${suffix}`)),
  );
  expect(told?.slice(1).map((number, index) => Math.abs(Number(number) - lengths[index]!) <= 5)).toEqual(
    lengths.map(() => true),
  );
});

it("the README states the guarantees of docs/guarantees.md, row by row", () => {
  const rowsOf = (page: string, heading: string): string[] => {
    const section = readFileSync(join(root, page), "utf8").split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
    return section.split("\n").filter((line) => line.startsWith("|"));
  };
  const rows = rowsOf("README.md", "Guarantees");
  expect(rows.length).toBeGreaterThan(8);
  expect(rows).toEqual(rowsOf("docs/guarantees.md", "In short"));
  // A row of the summary that claims three machines has details that do, too.
  const details = rowsOf("docs/guarantees.md", "Per file system");
  for (const part of ["events", "hand-off", "objects", "files"])
    expect(details.find((row) => row.startsWith(`| ${part}:`))).toContain("run by three machines");
});

it("the README and docs/choosing.md say the same of when not to use it", () => {
  const pointsOf = (page: string): string[] => {
    const section = readFileSync(join(root, page), "utf8").split("## When not to use it\n")[1]?.split("\n## ")[0] ?? "";
    // Each links to a section of its own.
    return section
      .split("\n")
      .filter((line) => line.startsWith("- "))
      .map((line) => line.replace(/ See \[.*/, ""));
  };
  const points = pointsOf("README.md");
  expect(points.length).toBeGreaterThan(3);
  expect(pointsOf("docs/choosing.md")).toEqual(points);
});

it("every decision is listed once, in a file that is named after its title", () => {
  const directory = join(root, "docs/decisions");
  const index = readFileSync(join(directory, "README.md"), "utf8");
  const listed = [...index.matchAll(/\[(\d+)\. (.*?)\]\((.*?)\) +\|/g)].map(([, number, title, file]) => ({ number, title, file })); // prettier-ignore
  const found = readdirSync(directory)
    .filter((file) => file !== "README.md")
    .map((file) => {
      const [, number, title = ""] = /^# (\d+)\. (.*)/.exec(readFileSync(join(directory, file), "utf8")) ?? [];
      return { number, title, file };
    });
  const byFile = (a: { file?: string | undefined }, b: { file?: string | undefined }): number => (a.file ?? "").localeCompare(b.file ?? ""); // prettier-ignore
  expect(listed.toSorted(byFile)).toEqual(found.toSorted(byFile));
  for (const { number = "", title, file } of found) {
    const words = title.replaceAll(/`|'(?=s\b)/g, "").toLowerCase().match(/[a-z0-9]+/g); // prettier-ignore
    expect(file).toBe(`${number.padStart(4, "0")}-${words?.join("-")}.md`);
  }
});

it("no page that is shipped links to a file that is not", () => {
  const shipped = /^(docs|examples|CHANGELOG\.md|CONTRIBUTING\.md|README\.md|SECURITY\.md|LICENSE)(\/|$)/;
  const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  const broken = [...pages, "README.md", "CHANGELOG.md"].flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
      .map(([, link = ""]) => relative(root, resolve(root, dirname(page), link)))
      .filter((target) => !shipped.test(target) || !existsSync(join(root, target)))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});
