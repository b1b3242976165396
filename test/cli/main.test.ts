// The built command as a process: exit codes, flushed output, and signals.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

const main = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `onStderr` is called with all that was written so far. */
function run(args: readonly string[], onStderr?: (text: string, kill: () => void) => void): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    const written = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (written.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      written.stderr += text;
      onStderr?.(written.stderr, () => child.kill("SIGINT"));
    });
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal, ...written }));
  });
}

test("the command is a bundle of CommonJS: it reads few files, and none through libuv's pool", () => {
  const listed = (path: string): string[] => readdirSync(new URL(path, import.meta.url)).sort();
  expect(listed("../../dist/cli")).toEqual(["bin.cjs", "chunks", "licenses.txt"]);
  expect(listed("../../dist/cli/chunks").filter((name) => !name.endsWith(".cjs"))).toEqual([]);
});

test("a report is written whole before the process ends", async () => {
  const directory = makeScratch();
  const { exitCode, stdout, stderr } = await run(["doctor", directory, "--json"]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ directory });
  expect(readdirSync(directory)).toEqual([]);
});

test("wrong usage ends the process with 2", async () => {
  const { exitCode, stdout, stderr } = await run(["doctor"]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toMatch(/^holdfast: missing required argument/);
});

test("Ctrl-C cleans up, and ends the process as a signal does", async () => {
  const directory = makeScratch();
  const { exitCode, signal, stdout, stderr } = await run(["doctor", directory, "--with-peer"], (text, kill) => {
    if (text.includes("Waiting for a peer")) kill();
  });
  expect({ exitCode, signal, stdout }).toEqual({ exitCode: null, signal: "SIGINT", stdout: "" });
  expect(stderr).toMatch(/\nholdfast: interrupted, and cleaned up\n$/);
  expect(readdirSync(directory)).toEqual([]);
});

test.skipIf(process.platform === "win32").each([
  { flags: [], stderr: "holdfast: warning: The share is slow.\n" },
  { flags: ["--json"], stderr: '{"warning":{"name":"HoldfastWarning","message":"The share is slow."}}\n' },
])("a warning is told in our own form, and Node adds nothing to it: $flags", async ({ flags, stderr }) => {
  const warnWhenAsked = `process.on("SIGWINCH",()=>process.emitWarning("The share is slow.","HoldfastWarning"))`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(warnWhenAsked)}` };
  const lock = ["--semaphore", `${makeScratch()}/a.lock`];
  const process = new HoldfastProcess(["run", ...flags, ...lock, "--", "sh", "-c", "kill -WINCH $PPID; read line"], {
    env,
  });
  await process.hasSaid("The share is slow");
  process.endInput();
  expect((await process.ended).stderr).toBe(stderr);
});
