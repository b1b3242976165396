// The harness as a command: its exit codes, and that what it prints can be used.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const main = fileURLToPath(new URL("../../dist-harness/harness/main.js", import.meta.url));

function run(...args: readonly string[]): Promise<{ readonly exitCode: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], { maxBuffer: 2 ** 26 }, (error, stdout) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code), stdout });
    });
  });
}

test("`explore` tells what it tried", async () => {
  const { exitCode, stdout } = await run("explore", "--scenario", "publish: replace", "--json");
  expect(exitCode).toBe(0);
  const { explorations } = JSON.parse(stdout) as { explorations: { scenario: string; exhausted: boolean }[] };
  expect(explorations.length).toBeGreaterThan(0);
  for (const { scenario, exhausted } of explorations) {
    expect(scenario).toContain("publish: replace");
    expect(exhausted).toBe(true);
  }
});

test("a broken promise can be seen again by the command that is printed with it", async () => {
  const { exitCode, stdout } = await run("explore", "--mutants", "--scenario", "no check after the link (C4n)");
  expect(exitCode).toBe(0);
  const [, name = "", seed = ""] = /--mutants --scenario '([^']+)' --replay (\S+)/.exec(stdout) ?? [];
  const again = await run("explore", "--mutants", "--scenario", name, "--replay", seed);
  expect(again.exitCode).toBe(1);
  expect(again.stdout).toMatch(/is lost|won twice/);
});

test("`torture` ends with 1 when a promise is broken", async () => {
  const { exitCode, stdout } = await run("torture", "--part", "gate", "--seconds", "5", "--processes", "4", "--sabotage", "--json"); // prettier-ignore
  expect(exitCode).toBe(1);
  const { parts } = JSON.parse(stdout) as { parts: { part: string; violations: string[] }[] };
  expect(parts.map(({ part }) => part)).toEqual(["gate"]);
  expect(parts[0]?.violations.join("\n")).toMatch(/won twice|is lost/);
});

test.each([
  ["explore", "--scenario", "no such thing"],
  ["explore", "--replay", "0"],
  ["torture", "--seconds", "many"],
])("wrong usage ends with 2: %s %s %s", async (...args) => {
  expect((await run(...args)).exitCode).toBe(2);
});
