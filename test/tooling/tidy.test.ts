// Keeps the tree tidy where neither the compiler nor the linter looks.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { errorCodes, HoldfastError } from "../../src/errors.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const linesMax = 500;
const linesMin = 12;
const roomFilesMax = 15;
/** Why each of them is short. */
const mayBeShort: Readonly<Record<string, string>> = {
  "src/cli/main.ts": "an entry point",
  "src/events/index-thread.ts": "an entry point",
  "src/format/checksum.ts": "one fact of every format",
  "src/format/version.ts": "one fact of every format",
  "src/ports/random.ts": "a port has a file of its own",
  "src/ports/watch.ts": "a port has a file of its own",
  "harness/mutants/mutant.ts": "the imports of every mutant file",
  "harness/rooms/room.ts": "one interface, used by every list of rooms",
  "harness/rooms/store.ts": "one of a list of rooms, each with a file",
  "harness/scenarios/volumes.ts": "values that the scenarios of all rooms share",
};

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Paths from the root of the repository, with `/`. */
function filesUnder(directory: string, suffix: string): string[] {
  if (!existsSync(join(root, directory))) return [];
  return readdirSync(join(root, directory), { recursive: true, encoding: "utf8" })
    .map((path) => `${directory}/${path.replaceAll("\\", "/")}`)
    .filter((path) => !path.includes("node_modules"))
    .filter((path) => path.endsWith(suffix))
    .sort();
}

const sources = [...filesUnder("src", ".ts"), ...filesUnder("harness", ".ts")];
const ownSources = sources.filter((path) => !path.endsWith(".test.ts"));
const tests = [...sources.filter((path) => path.endsWith(".test.ts")), ...filesUnder("test", ".ts")];

describe("sources", () => {
  test("a source file begins with a sentence that says what it owns", () => {
    expect(ownSources.filter((path) => !beginsWithSentence(read(path)))).toEqual([]);
  });

  test(`no source file has more than ${linesMax} lines`, () => {
    expect(sources.filter((path) => read(path).trimEnd().split("\n").length > linesMax)).toEqual([]);
  });

  test(`no room has more than ${roomFilesMax} source files`, () => {
    const counts = new Map<string, number>();
    for (const path of ownSources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > roomFilesMax)).toEqual([]);
  });

  test(`no source file has fewer than ${linesMin} lines`, () => {
    const short = ownSources.filter((path) => read(path).trimEnd().split("\n").length < linesMin);
    expect(short.filter((path) => !(path in mayBeShort) && !path.endsWith(".d.ts"))).toEqual([]);
  });

  // Under jest and in `node:vm` an error or a promise of Node has another class of the same name.
  test("no source file recognises errors or promises by their class", () => {
    const byClass = /\binstanceof\s+(Error|HoldfastError|Promise)\b/;
    expect(ownSources.filter((path) => byClass.test(withoutComments(read(path))))).toEqual([]);
  });

  test("files and folders have kebab-case names", () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*$/;
    const isKebab = (path: string) =>
      path
        .replace(/(\.test|\.deep|\.d)?\.ts$/, "")
        .split("/")
        .every((part) => kebab.test(part));
    expect([...sources, ...tests].filter((path) => !isKebab(path))).toEqual([]);
  });

  test("no file is named after what it is not about", () => {
    const vague = ["util", "utils", "type", "types", "helper", "helpers", "misc"];
    expect([...sources, ...tests].filter((path) => vague.includes(basename(path, ".ts")))).toEqual([]);
  });

  test("only the eight known files lie directly in src", () => {
    const known = [
      "src/common.ts",
      "src/copy-store.ts",
      "src/errors.ts",
      "src/index.ts",
      "src/upgrade-store.ts",
      "src/store-metrics.ts",
      "src/store.ts",
      "src/verify-store.ts",
    ];
    expect(ownSources.filter((path) => dirname(path) === "src" && !known.includes(path))).toEqual([]);
  });

  // The linter can forbid Date.now, not a constructor without arguments.
  test("no room asks the clock by `new Date()`", () => {
    const mayKnowTheTime = /^(harness|src\/(ports\/node|testing|cli|console|s3))\//;
    const asksClock = /\bnew\s+Date\s*(?:\(\s*\)|[^\s(])|(?<!new\s+)(?<![.\w])Date\s*\(/;
    const guilty = ownSources.filter(
      (path) => !mayKnowTheTime.test(path) && asksClock.test(withoutComments(read(path))),
    );
    expect(guilty).toEqual([]);
  });

  // What their lost replies mean is said once, in durable/publish. The doctor examines the calls
  // themselves.
  test("only rooms that say what a lost reply means call rename, link and unlink of a disk", () => {
    const mayChangeNames = /^(harness|src\/(durable|locks|ports|testing|doctor))\//;
    const changesNames = /\bdisk\s*\.\s*(rename|link|unlink)\b/;
    const guilty = ownSources.filter(
      (path) => !mayChangeNames.test(path) && changesNames.test(withoutComments(read(path))),
    );
    expect(guilty).toEqual([]);
  });
});

test("the tree in CONTRIBUTING.md has every room and every folder of a room", () => {
  const tree = /^src\/\n([^]*?)^test\/ /m.exec(read("CONTRIBUTING.md"))?.[1] ?? "";
  const [inSource = "", inHarness = ""] = tree.split(/^harness\//m);
  const roomsOfTree = [...inSource.split(/^ {2}(?=\S)/m), `harness/${inHarness}`];
  const folders = sources.map((path) =>
    dirname(path.replace(/^src\//, ""))
      .split("/")
      .slice(0, 2),
  );
  const missing = folders.filter(([room, folder]) => {
    if (room === ".") return false;
    const lines = roomsOfTree.find((each) => each.startsWith(`${room}/`));
    return lines === undefined || (folder !== undefined && !new RegExp(` ${folder}/`).test(lines));
  });
  expect([...new Set(missing.map((path) => path.join("/")))]).toEqual([]);
});

describe("package-lock.json", () => {
  interface Locked {
    readonly hasInstallScript?: boolean;
    readonly optional?: boolean;
  }

  test("names no registry", () => {
    const lines = read("package-lock.json").split("\n");
    expect(lines.filter((line) => line.includes(`"resolved": "http`))).toEqual([]);
  });

  test("has no dependency with an install script, unless it is optional", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> };
    const guilty = Object.entries(packages).filter(([, locked]) => locked.hasInstallScript && !locked.optional);
    expect(guilty.map(([name]) => name)).toEqual([]);
  });
});

// A fixed wait is a guess: too short on a slow machine, too long on all others.
test("a test waits for what happens, and says why where it lets time pass", () => {
  const waits = /\bsleep\((?!\)|0\)|-|ms, options)|\bsetTimeout\(/;
  // In a loop that looks; or ended by a signal; or the port itself, handed on.
  const isBounded = /\bwhile \(|\bfor \(|signal|=> (ports\.)?clock\.sleep\(|function |import /;
  // The machines of the bed are real ones, and the linter's own examples are no tests.
  const isExempt = /^test\/(shares\/|waiting\.ts|tooling\/|testing\/|processes\/torture)/;
  const guilty = tests
    .filter((path) => !isExempt.test(path))
    .flatMap((path) => {
      const lines = read(path).split("\n");
      return lines.flatMap((line, index) => {
        if (!waits.test(line) || isBounded.test(line) || lines[index - 1]?.includes("// Time passes: ")) return [];
        return [`${path}:${index + 1}: ${line.trim()}`];
      });
    });
  expect(guilty).toEqual([]);
});

test("no file names a home directory", () => {
  // Put together here, so that this file does not find itself.
  const homes = [
    ["", "home", "[\\w.-]+", ""].join("/"),
    ["", "Users", "[\\w.-]+", ""].join("/"),
    ["", "root", ""].join("/"),
  ];
  const home = new RegExp(`(?<![\\w.})-])(?:${homes.join("|")})|[A-Z]:\\\\+Users\\\\+\\w`);
  // Also what is not committed yet: it is easier to mend before.
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const files = listed
    .split("\0")
    .filter((path) => path !== "" && statSync(join(root, path), { throwIfNoEntry: false })?.isFile());
  expect(files.length).toBeGreaterThan(10);
  expect(files.filter((path) => home.test(read(path)))).toEqual([]);
});

describe("docs/errors.md", () => {
  const page = read("docs/errors.md");
  const headings = [...page.matchAll(/^#{2,3} ([A-Z_]+)$/gm)].map((match) => match[1]);
  const declarations = read("src/errors.ts");

  test("has one heading for each code, in the order of src/errors.ts", () => {
    expect(headings).toEqual(errorCodes);
  });

  for (const code of errorCodes) {
    test(`states action and facts of ${code}`, () => {
      const section = page.split(/^#{2,3} /m).find((part) => part.startsWith(`${code}\n`)) ?? "";
      const facts = declarations.match(new RegExp(`^  ${code}: \\{([^}]*)\\};$`, "m"))?.[1];
      expect(facts).toBeDefined();
      const names = [...facts!.matchAll(/readonly (\w+\??):/g)].map((match) => `\`${match[1]}\``);
      expect(section).toContain(`- Facts: ${names.length === 0 ? "none" : names.join(", ")}\n`);
      expect(section).toContain(`- Action: \`${new HoldfastError(code, "", {}).action}\`\n`);
    });
  }
});

describe("links", () => {
  const { files, homepage } = JSON.parse(read("package.json")) as { files: string[]; homepage: string };
  const repository = homepage.replace("#readme", "/blob/main/");
  const isBelow = (path: string, name: string): boolean => path === name || path.startsWith(`${name}/`);
  /** True if the package contains the path. */
  const isShipped = (path: string): boolean =>
    ["README.md", "LICENSE", ...files].some((name) => isBelow(path, name)) &&
    !files.some((name) => name.startsWith("!") && isBelow(path, name.slice(1)));
  const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", ...filesUnder("docs", ".md")];

  for (const page of pages) {
    test(`every link in ${page} to a file of ours leads there, also for a reader of the package`, () => {
      const text = read(page)
        .replace(/^(```|~~~)[^]*?^\1/gm, "")
        .replace(/`[^`\n]*`/g, "");
      const targets = [...text.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)/gm)].map(
        (match) => match[1] ?? match[2] ?? "",
      );
      const missing = targets.filter((target) => {
        const path = decodeURIComponent(target.replace(/[#?].*$/, ""));
        if (path.startsWith(repository)) return !existsSync(join(root, path.slice(repository.length)));
        if (/^([a-z][a-z0-9+.-]*:|#|\/\/)/i.test(target)) return false;
        const file = posix.normalize(posix.join(dirname(page), path)).replace(/\/$/, "");
        return !existsSync(join(root, file)) || (isShipped(page) && !isShipped(file));
      });
      expect(missing).toEqual([]);
    });
  }
});

function beginsWithSentence(text: string): boolean {
  const lines = text.replace(/^#!.*\n/, "").split("\n");
  const end = lines.findIndex((line) => !line.startsWith("// "));
  const first = lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join(" ");
  return /^["`']?[A-Z].*[.:?!]( |$)/.test(first);
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "");
}
