import { chmodSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { errorCodes, type DoctorReport } from "../../src/index.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], stdout: { isTTY?: boolean; columns?: number } = {}): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { ...stdout, write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  const exitCode = await runCommandLine(args, streams, new AbortController().signal);
  return { exitCode, ...written };
}

/** With --json all that is written is one line. */
function parseLine(text: string): unknown {
  expect(text).toMatch(/^[^\n]+\n$/);
  return JSON.parse(text);
}

describe("help", () => {
  test("of every command has an example, and ends with the exit codes", async () => {
    const page = await run(["--help"]);
    expect(page).toMatchObject({ exitCode: 0, stderr: "" });
    const [, list = ""] = page.stdout.split("Commands:\n");
    const names = [...list.split("\n\n")[0]!.matchAll(/^ {2}([a-z0-9-]+)/gm)].map((match) => match[1] ?? "");
    expect(names).toContain("doctor");
    for (const name of names.filter((each) => each !== "help")) {
      const { exitCode, stdout } = await run([name, "--help"]);
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(new RegExp(`\\nExamples?:\\n  holdfast ${name}`));
      expect(stdout).toMatch(/\nExit codes:\n( +\d+ {2}\S.*\n)+$/);
      expect(stdout).toContain("--json");
    }
  });

  test("is on stderr, and the exit code says so, when nothing was asked for", async () => {
    const { exitCode, stdout, stderr } = await run([]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toMatch(/^Usage: holdfast[^]*\nExit codes:\n( +\d+ {2}\S.*\n)+$/);
  });

  test("the version is that of the package", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    for (const flag of ["--version", "-V"])
      expect(await run([flag])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
  });
});

describe("wrong usage ends with 2 and is told on stderr:", () => {
  const cases: Readonly<Record<string, readonly [args: readonly string[], message: RegExp]>> = {
    "no directory": [["doctor"], /missing required argument 'DIR'/],
    "an unknown command": [["docter", "."], /unknown command 'docter'/],
    "an unknown option": [["doctor", ".", "--fast"], /unknown option '--fast'/],
    "one directory too many": [["doctor", ".", "."], /too many arguments/],
    "a bad duration": [
      ["doctor", ".", "--with-peer", "--timeout", "30"],
      /'30' is invalid\. A duration has a unit: write 30s or 30ms/,
    ],
    "a file instead of a directory": [["doctor", import.meta.filename], /is not a directory/],
  };
  for (const [title, [args, message]] of Object.entries(cases)) {
    test(title, async () => {
      const { exitCode, stdout, stderr } = await run(args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
      expect(stderr).toMatch(/^holdfast: /);
      expect(stderr).toMatch(message);
      expect(stderr).toMatch(
        args[0] === "docter" ? /See `holdfast --help`/ : /See `holdfast doctor --help`|INVALID_PATH/,
      );

      const json = await run([...args, "--json"]);
      expect({ exitCode: json.exitCode, stdout: json.stdout }).toEqual({ exitCode: 2, stdout: "" });
      expect(parseLine(json.stderr)).toMatchObject({
        error: { message: expect.stringMatching(message) as string, action: "fix-caller", exitCode: 2 },
      });
    });
  }
});

test("a file in the place of a directory is wrong usage to commands that would make something there", async () => {
  for (const args of [
    ["events", "append", import.meta.filename, "--type", "A"],
    ["handoff", "adopt", import.meta.filename, import.meta.dirname, "--renamed"],
    ["objects", "mb", import.meta.filename],
    ["init", import.meta.filename],
  ]) {
    const { exitCode, stderr } = await run(args);
    expect({ args, exitCode }).toEqual({ args, exitCode: 2 });
    expect(stderr).not.toContain("report it");
  }
});

test("an argument of a megabyte is data, and no path that a message would be searched for", async () => {
  const data = JSON.stringify("x".repeat(1_000_000));
  const args = ["events", "append", join(makeScratch(), "log"), "--type", "A", "--data", data];
  expect(await run(args)).toMatchObject({ exitCode: 0 });
});

test("a command that reads from a terminal says how the input ends", async () => {
  let said = "";
  const pipes = {
    stdin: (async function* () {
      yield "";
    })(),
    isStdinTyped: true,
    stdout: { write: () => true },
    stderr: { write: (text: string) => (said += text) },
  };
  const args = ["events", "append", join(makeScratch(), "log")];
  expect(await runCommandLine(args, pipes, new AbortController().signal)).toBe(0);
  expect(said).toContain("reading from the terminal; Ctrl-D");
});

test.skipIf(process.platform === "win32")(
  "a directory behind links in a circle is wrong usage to every command",
  async () => {
    const root = makeScratch();
    const circle = join(root, "a");
    symlinkSync(join(root, "b"), circle);
    symlinkSync(circle, join(root, "b"));
    for (const args of [
      ["doctor", circle],
      ["locks", "list", circle],
      ["events", "read", circle],
      ["events", "append", circle, "--type", "Sold"],
      ["run", "--store", circle, "--lock", "x", "--", "true"],
      ["run", "--lock", join(circle, "x"), "--", "true"],
      ["semaphore", "status", circle],
    ]) {
      const { exitCode, stdout, stderr } = await run(["--json", ...args]);
      expect({ args, exitCode, stdout }).toEqual({ args, exitCode: 2, stdout: "" });
      expect(parseLine(stderr)).toMatchObject({ error: { code: "INVALID_PATH" } });
    }
  },
);

test("an error is told with its code and what to do, or as its facts in JSON", async () => {
  const directory = makeScratch();
  chmodSync(directory, 0o555);
  const { exitCode, stdout, stderr } = await asOrdinaryUser(() => run(["doctor", directory]));
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toMatch(/^holdfast: Nothing can be created in .*\n +NO_PERMISSION: Correct .*\n$/);
  const json = await asOrdinaryUser(() => run(["doctor", directory, "--json"]));
  expect(parseLine(json.stderr)).toMatchObject({
    error: { name: "HoldfastError", code: "NO_PERMISSION", action: "fix-caller", path: directory, exitCode: 1 },
  });
  expect(errorCodes).toContain("NO_PERMISSION");
});

describe("holdfast doctor", () => {
  test("prints the report as one line of JSON, wherever --json stands", async () => {
    const directory = makeScratch();
    writeFileSync(join(directory, "mine"), "");
    for (const args of [
      ["--json", "doctor", directory],
      ["doctor", "--json", directory],
      ["doctor", directory, "--json"],
    ]) {
      const { exitCode, stdout, stderr } = await run(args);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      const report = parseLine(stdout) as DoctorReport;
      expect(report.directory).toBe(directory);
      expect(["ok", "limited"]).toContain(report.verdict);
      for (const check of report.checks)
        expect(check).toMatchObject({
          id: expect.any(String) as string,
          question: expect.stringMatching(/\?$/) as string,
        });
    }
    expect(readdirSync(directory)).toEqual(["mine"]);
  });

  test("prints a page for people, in colour only where a terminal shows it", async () => {
    const directory = makeScratch();
    vi.stubEnv("NO_COLOR", undefined);
    vi.stubEnv("FORCE_COLOR", "1");
    const plain = await run(["doctor", directory]);
    expect(plain.exitCode).toBe(0);
    expect(plain.stdout).toMatch(/^good {5}hard-link {2,}A second link/m);
    expect(plain.stdout).toMatch(/\n(ok|limited): Holdfast can be used here.*\.\n$/);
    expect(plain.stdout).not.toContain("\u001b");
    const coloured = await run(["doctor", directory], { isTTY: true, columns: 60 });
    expect(coloured.stdout).toContain("\u001b[32mgood   \u001b[39m");
    expect(
      Math.max(
        ...stripColours(coloured.stdout)
          .split("\n")
          .map((line) => line.length),
      ),
    ).toBeLessThanOrEqual(60);
    vi.stubEnv("NO_COLOR", "1");
    vi.stubEnv("FORCE_COLOR", undefined);
    expect((await run(["doctor", directory], { isTTY: true })).stdout).not.toContain("\u001b");
    vi.unstubAllEnvs();
  });

  test("ends with 75 when no peer came", async () => {
    const directory = makeScratch();
    const { exitCode, stdout, stderr } = await run(["doctor", directory, "--with-peer", "--timeout", "20ms"]);
    expect(exitCode).toBe(75);
    expect(stderr).toMatch(/Waiting for a peer/);
    expect(stdout).toMatch(/No peer came within 20 ms/);
    const json = await run(["doctor", directory, "--with-peer", "--timeout", "0s", "--json"]);
    expect({ exitCode: json.exitCode, stderr: json.stderr }).toEqual({ exitCode: 75, stderr: "" });
    expect(parseLine(json.stdout)).toMatchObject({ peer: { state: "none came" } });
    expect(readdirSync(directory)).toEqual([]);
  });
});

function stripColours(text: string): string {
  // eslint-disable-next-line no-control-regex -- that is what a colour begins with
  return text.replace(/\u001b\[\d+m/g, "");
}
