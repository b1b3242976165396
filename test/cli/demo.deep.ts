// The demo as a process: what it promises at the end is true. That a lie is found is in demo-lies.deep.ts.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const main = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function demo(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, "demo", ...args], { stdio: ["ignore", "pipe", "pipe"] });
    const written = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (written.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (written.stderr += text));
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ exitCode, ...written }));
  });
}

test("nothing is lost among workstations that are killed and paused, and no temporary folder stays", async () => {
  const { exitCode, stdout, stderr } = await demo("--workstations", "3", "--seconds", "3");
  expect({ exitCode, stdout: stdout.slice(-400) }).toMatchObject({ exitCode: 0 });
  expect(stdout).toMatch(/^acknowledged +[1-9]/m);
  expect(stdout).toMatch(/^lost +0$/m);
  expect(stdout).toMatch(/^doubled +0$/m);
  expect(stdout).toContain("no two were inside together");
  expect(stdout).toMatch(/\nNothing was lost and nothing was doubled: .*\n$/);
  // A line for each second, for people.
  expect(stderr).toMatch(/^ +3 s +\d+ sales, events, locks, documents, labels and notes/m);
  const folder = /holdfast-demo-\w+/.exec(stderr)?.[0] ?? "";
  expect(folder).not.toBe("");
  expect(readdirSync(tmpdir())).not.toContain(folder);
});

test("joining needs a folder", async () => {
  const { exitCode, stderr } = await demo("--join");
  expect(exitCode).toBe(2);
  expect(stderr).toContain("--join needs --dir");
});
