// The command `holdfast semaphore`: what it prints, and what it ends with. The caller of these
// tests is the process that the locks belong to.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { parseLockFile } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(...args: string[]): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  const streams = {
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  return { exitCode: await runCommandLine(["semaphore", ...args], streams, new AbortController().signal), ...written };
}

const isLinux = process.platform === "linux";
const newLock = (): string => join(makeScratch(), "job.lock");
const foreignLock = (): string => `pid=4711\ntimestamp=${Math.floor(Date.now() / 1000)}\ntag=theirs\n`;
const staleLock = "pid=4711\ntimestamp=1000000000\n";

describe("acquire and release", () => {
  test("take the lock for the process that called the command, and give it back from another command of it", async () => {
    const lock = newLock();
    const taken = await run("acquire", lock, "--tag", "night\nly");
    expect(taken).toMatchObject({ exitCode: 0, stderr: "" });
    // With its name, so that a wrapper that ends at once is seen.
    const name = isLinux ? ` \\(${readFileSync(`/proc/${process.ppid}/comm`, "utf8").trim()}\\)` : ".*";
    expect(taken.stdout).toMatch(
      new RegExp(`^${lock} is held by process ${process.ppid}${name}, and ends with it\\.\n$`),
    );
    expect(parseLockFile(readFileSync(lock, "utf8"))).toMatchObject({ pid: process.ppid, tag: "night ly" });
    expect(await run("release", lock)).toEqual({ exitCode: 0, stdout: `${lock} is free.\n`, stderr: "" });
    expect(existsSync(lock)).toBe(false);
  });

  test("print one line of JSON", async () => {
    const lock = newLock();
    const info = { pid: process.ppid, timestamp: expect.any(Number) as number, tag: "t" };
    const taken = await run("try-acquire", lock, "--tag", "t", "--json");
    expect(JSON.parse(taken.stdout)).toMatchObject({
      path: lock,
      ...info,
      ...(isLinux ? { process: expect.stringMatching(/./) as string } : {}),
    });
    expect(JSON.parse((await run("status", lock, "--json")).stdout)).toEqual({
      path: lock,
      locked: true,
      stale: false,
      mine: true,
      info,
    });
    expect(JSON.parse((await run("release", lock, "--json")).stdout)).toEqual({ path: lock, released: true });
    expect(JSON.parse((await run("status", lock, "--json")).stdout)).toEqual({
      path: lock,
      locked: false,
      stale: false,
      mine: false,
    });
  });

  test("end with 75 when another process holds it, and tell which", async () => {
    const lock = newLock();
    writeFileSync(lock, foreignLock());
    for (const args of [
      ["try-acquire", lock],
      ["acquire", lock, "--timeout", "30ms"],
      ["acquire", lock, "--timeout", "0s"],
    ]) {
      // prettier-ignore
      const { exitCode, stdout, stderr } = await run(...args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 75, stdout: "" });
      expect(stderr).toMatch(/is held by process 4711 since .* \("theirs"\)/);
    }
    const json = await run("try-acquire", lock, "--json");
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: "LOCK_TIMEOUT", exitCode: 75, blockedBy: [{ holder: { pid: 4711 }, tag: "theirs" }] },
    });
  });

  test("are refused a second time: a process that has it already is told that it is held", async () => {
    const lock = newLock();
    expect((await run("acquire", lock)).exitCode).toBe(0);
    expect((await run("try-acquire", lock)).exitCode).toBe(75);
  });

  test("end with 4 when it is not held by the calling process, and remove nothing without --force", async () => {
    const lock = newLock();
    expect(await run("release", lock)).toMatchObject({ exitCode: 4, stdout: "" });
    writeFileSync(lock, foreignLock());
    const refused = await run("release", lock);
    expect(refused.exitCode).toBe(4);
    expect(refused.stderr).toContain(`is not held by process ${process.ppid}: process 4711 since`);
    expect(existsSync(lock)).toBe(true);
    expect((await run("release", lock, "--force")).exitCode).toBe(0);
    expect(existsSync(lock)).toBe(false);
  });

  test("take flags before and after the file", async () => {
    const lock = newLock();
    expect((await run("acquire", "--tag", "t", "--timeout", "1s", lock)).exitCode).toBe(0);
    expect((await run("release", "--force", lock)).exitCode).toBe(0);
  });

  test("name another process with --pid, which alone can release it then", async () => {
    const lock = newLock();
    expect((await run("acquire", lock, "--pid", String(process.pid))).exitCode).toBe(0);
    expect((await run("release", lock)).exitCode).toBe(4);
    expect((await run("release", lock, "--pid", String(process.pid))).exitCode).toBe(0);
  });

  test("make a directory when asked", async () => {
    const lock = newLock();
    expect((await run("acquire", lock, "--directory")).exitCode).toBe(0);
    expect(parseLockFile(readFileSync(join(lock, "owner"), "utf8"))?.pid).toBe(process.ppid);
    expect((await run("release", lock, "--directory")).exitCode).toBe(0);
    expect(existsSync(lock)).toBe(false);
  });

  test.skipIf(process.platform === "win32")(
    "warn of a directory that every user can write to, unless it is sticky",
    async () => {
      const directory = makeScratch();
      for (const [mode, warns] of [
        [0o777, true],
        [0o1777, false],
        [0o755, false],
      ] as const) {
        // prettier-ignore
        chmodSync(directory, mode);
        const lock = join(directory, "job.lock");
        const { exitCode, stderr } = await run("acquire", lock);
        expect(exitCode).toBe(0);
        expect(/warning: .* can be written by every user and has no sticky bit/.test(stderr)).toBe(warns);
        await run("release", lock);
      }
    },
  );
});

describe("through npx", () => {
  const npx = { npm_command: "exec", npm_lifecycle_event: "npx" };
  const scripts: Readonly<Record<string, boolean>> = {
    "'holdfast'": true,
    holdfast: true,
    '"holdfast.cmd"': true,
    "/app/node_modules/.bin/holdfast semaphore acquire job.lock": true,
    "holdfast semaphore acquire job.lock && work": false,
    "'deploy-holdfast'": false,
    "'deploy'": false,
  };

  test.each(Object.entries(scripts))("a lock without --pid (%s) is refused: %s", async (script, isRefused) => {
    const lock = newLock();
    for (const [name, value] of Object.entries({ ...npx, npm_lifecycle_script: script })) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const verb of ["acquire", "try-acquire", "release"]) {
      const { exitCode, stderr } = await run(verb, lock);
      expect({ verb, isRefused: exitCode === 2 && /npx, which ends at once.*--pid \$\$/.test(stderr) }).toEqual({
        verb,
        isRefused,
      });
    }
    expect((await run("acquire", lock, "--pid", String(process.pid))).exitCode).toBe(0);
    expect((await run("release", lock, "--force")).exitCode).toBe(0);
  });

  test.skipIf(process.platform === "win32")("as npm really runs it, nothing is taken", () => {
    const project = makeScratch();
    const bin = join(project, "node_modules", ".bin");
    mkdirSync(bin, { recursive: true });
    symlinkSync(fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url)), join(bin, "holdfast"));
    chmodSync(join(bin, "holdfast"), 0o755);
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "shop", version: "1.0.0", private: true }));
    const lock = join(project, "job.lock");
    for (const args of [
      ["npx", "--no-install", "holdfast"],
      ["npm", "exec", "--offline", "--", "holdfast"],
    ]) {
      const [command = "", ...rest] = args;
      const { status, stderr } = spawnSync(command, [...rest, "semaphore", "acquire", lock], {
        cwd: project,
        encoding: "utf8",
      });
      expect({ status, said: /npx, which ends at once/.test(stderr) ? "refused" : stderr }).toEqual({
        status: 2,
        said: "refused",
      });
    }
    expect(existsSync(lock)).toBe(false);
  });
});

describe("status", () => {
  test("tells in words who holds it, since when, and whether it is stale", async () => {
    const lock = newLock();
    expect(await run("status", lock)).toEqual({ exitCode: 3, stdout: "free\n", stderr: "" });
    writeFileSync(lock, staleLock);
    const { exitCode, stdout } = await run("status", lock);
    expect(exitCode).toBe(4);
    expect(stdout).toBe("locked, but stale\npid: 4711\nsince: 2001-09-09T01:46:40.000Z\n");
    expect((await run("status", lock, "--stale", "never")).stdout).toMatch(/^locked\n/);
    writeFileSync(lock, foreignLock());
    const held = await run("status", lock);
    expect(held.exitCode).toBe(0);
    expect(held.stdout).toMatch(/^locked\npid: 4711\nsince: .*\ntag: theirs\n$/);
    writeFileSync(lock, "garbage");
    expect((await run("status", lock)).stdout).toMatch(/^locked\nby an unknown process/);
  });
});

describe("clean", () => {
  test("removes a stale lock, and ends with 3 when there was nothing to remove", async () => {
    const lock = newLock();
    expect(await run("clean", lock)).toMatchObject({ exitCode: 3, stdout: `${lock}: nothing is stale.\n` });
    writeFileSync(lock, foreignLock());
    expect((await run("clean", lock)).exitCode).toBe(3);
    expect(existsSync(lock)).toBe(true);
    writeFileSync(lock, staleLock);
    expect(await run("clean", lock)).toMatchObject({ exitCode: 0, stdout: `${lock} was cleaned.\n` });
    expect(existsSync(lock)).toBe(false);
    expect(JSON.parse((await run("clean", lock, "--json")).stdout)).toEqual({ path: lock, cleaned: false });
  });
});

describe("wrong usage ends with 2:", () => {
  const cases: Readonly<Record<string, readonly [args: readonly string[], message: RegExp]>> = {
    "no verb": [[], /^Usage: holdfast semaphore/],
    "an unknown verb": [["lock", "x"], /unknown command 'lock'/],
    "no file": [["acquire"], /missing required argument 'FILE'/],
    "an empty path": [["acquire", ""], /cannot be a lock: it is empty/],
    "a path that leads elsewhere": [["acquire", "../job.lock"], /cannot be a lock: it contains `\.\.`/],
    "a bad duration": [["acquire", "x", "--timeout", "soon"], /'soon' is invalid\. A duration has a unit/],
    "a bad pid": [["acquire", "x", "--pid", "-1"], /'-1' is invalid\. Write the number of a process/],
    "a process that is not running": [["acquire", "x", "--pid", "4294967295"], /no process 4294967295 is running/],
  };
  for (const [title, [args, message]] of Object.entries(cases))
    test(title, async () => {
      const { exitCode, stdout, stderr } = await run(...args);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
      expect(stderr).toMatch(message);
    });

  test("a directory with files in it, which no force removes", async () => {
    const directory = join(makeScratch(), "data");
    mkdirSync(directory);
    writeFileSync(join(directory, "precious"), "");
    expect((await run("release", directory, "--force")).exitCode).toBe(2);
    // Not waited for either: it will never be a lock.
    expect((await run("acquire", directory)).exitCode).toBe(2);
    expect(existsSync(join(directory, "precious"))).toBe(true);
  });

  test("a file with contents that are no lock, which is neither waited for nor removed", async () => {
    const table = join(makeScratch(), "ledger.csv");
    writeFileSync(table, "id,amount\n1,20\n");
    for (const args of [["acquire"], ["try-acquire"], ["status"], ["clean"], ["release"], ["release", "--force"]])
      expect(await run(...args, table)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(
          "is not a lock file: its contents are not a record. Nothing was removed",
        ) as string,
      });
    expect(readFileSync(table, "utf8")).toBe("id,amount\n1,20\n");
  });
});

test("every verb has an example and its exit codes in its help", async () => {
  for (const verb of ["try-acquire", "acquire", "release", "status", "clean"]) {
    const { exitCode, stdout } = await run(verb, "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`\\nExamples?:\\n  holdfast semaphore ${verb}`));
    expect(stdout).toMatch(/\nExit codes:\n( +\d+ {2}\S.*\n)+$/);
  }
});
