import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProcessGroup } from "../../src/cli/commands/handoff/process-group.ts";
import { NotStarted, runGuarded } from "../../src/cli/locking/guarded-command.ts";
import { commandOnWindows } from "../../src/cli/windows/batch-file.ts";
import { nativePath, withNativePaths } from "../../src/cli/windows/native-path.ts";
import { endTree, type ListedProcess } from "../../src/cli/windows/process-tree.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

const isWindows = process.platform === "win32";

describe("a command on Windows", () => {
  const start = (words: readonly string[], files: readonly string[]) =>
    commandOnWindows(words, {
      environment: { Path: "C:\\node;C:\\tools", PathExt: ".EXE;.CMD", comspec: "C:\\windows\\cmd.exe" },
      directory: "C:\\work",
      exists: async (path) => files.includes(path),
    });
  const lineOf = async (words: readonly string[], file: string) => (await start(words, [file])).args.at(-1);

  test("is a batch file if the first hit in the directory and in PATH is one", async () => {
    const npm = await start(["npm", "test"], ["C:\\node\\npm.cmd", "C:\\tools\\npm.exe"]);
    expect(npm.file).toBe("C:\\windows\\cmd.exe");
    expect(npm.args).toEqual(["/d", "/e:on", "/v:off", "/s", "/c", '""C:\\node\\npm.cmd" "test""']);
    expect(npm.isVerbatim).toBe(true);
    expect(await lineOf(["run.bat"], "C:\\work\\run.bat")).toBe('""C:\\work\\run.bat""');
    expect(await lineOf(["bin/run"], "C:\\work\\bin\\run.cmd")).toBe('""C:\\work\\bin\\run.cmd""');
  });

  test.each([
    ["a program", ["C:\\node\\npm.exe", "C:\\tools\\npm.cmd"]],
    ["unknown", []],
  ])("stays as it is if it is %s", async (_what, files) => {
    expect(await start(["npm", "a b"], files)).toEqual({ file: "npm", args: ["a b"], isVerbatim: false });
  });

  test("passes no part of an argument to cmd.exe", async () => {
    expect(await lineOf(["x", 'a" & del *'], "C:\\work\\x.cmd")).toBe('""C:\\work\\x.cmd" "a"" & del *""');
    expect(await lineOf(["x", "100%PATH%"], "C:\\work\\x.cmd")).toContain('"100%%cd:~,%PATH%%cd:~,%"');
    expect(await lineOf(["x", "C:\\dir\\"], "C:\\work\\x.cmd")).toContain('"C:\\dir\\\\"');
    await expect(lineOf(["x", "a\nb"], "C:\\work\\x.cmd")).rejects.toThrow(/line break/);
  });

  test.runIf(isWindows).each([
    ["arguments", ["a b", "", "x&y", "(1)", "^", "!", 'a"b', "C:\\dir\\"]],
    ["percent signs", ["50%", "%PATH%"]],
  ])("that is a batch file gets its %s unchanged, and its exit code counts", async (_what, words) => {
    const scratch = makeScratch();
    writeFileSync(join(scratch, "show.cjs"), `require("fs").writeFileSync(process.argv[2], JSON.stringify(process.argv.slice(3)))`); // prettier-ignore
    writeFileSync(join(scratch, "show.cmd"), `@"${process.execPath}" "%~dp0show.cjs" %*\r\n@exit /b 7\r\n`);
    const result = join(scratch, "result");
    const options = { environment: {}, lost: new AbortController().signal };
    expect(await runGuarded([join(scratch, "show"), result, ...words], options)).toBe(7);
    expect(JSON.parse(readFileSync(result, "utf8"))).toEqual(words);
    await expect(runGuarded([join(scratch, "show"), "a\nb"], options)).rejects.toThrow(NotStarted);
  });
});

describe("a process tree of Windows", () => {
  async function endedOf(list: readonly ListedProcess[], isThere = false): Promise<number[]> {
    const ended = new Set<number>();
    await endTree(10, 1000, {
      endTree: () => (isThere ? Promise.resolve() : Promise.reject(new Error("not found"))),
      list: async () => list.filter(({ pid }) => !ended.has(pid)),
      end: (pid) => void ended.add(pid),
    });
    return [...ended];
  }

  test("is ended by the program of Windows while its first process exists", async () => {
    expect(await endedOf([{ pid: 11, parent: 10, startedMs: 2000 }], true)).toEqual([]);
  });

  test("is ended although its first process has ended, and without its namesakes", async () => {
    const list = [
      { pid: 12, parent: 11, startedMs: 3000 },
      { pid: 11, parent: 10, startedMs: 2000 },
      // Older than the process that has the number of its parent now.
      { pid: 20, parent: 10, startedMs: 500 },
      { pid: 21, parent: 11, startedMs: 1500 },
      { pid: 30, parent: 1, startedMs: 4000 },
    ];
    expect(await endedOf(list)).toEqual([10, 11, 12]);
  });

  test.runIf(isWindows)("is ended with what its shell has left behind", async () => {
    const scratch = makeScratch();
    const [pid, script] = [join(scratch, "pid"), join(scratch, "child.cjs")];
    writeFileSync(script, `require("fs").writeFileSync(${JSON.stringify(pid)}, process.pid + "\\n"); setInterval(() => {}, 1000);`); // prettier-ignore
    const child = spawn(`"${process.execPath}" "${script}"`, { shell: true, windowsHide: true, stdio: "pipe" });
    child.stdout.resume();
    child.stderr.resume();
    const group = new ProcessGroup(child);
    const ended = group.ended();
    onTestFinished(() => group.kill());
    await until(() => readable(pid).endsWith("\n"));
    process.kill(child.pid ?? 0);
    await until(() => group.hasExited);
    group.end();
    expect(await ended).toMatchObject({ wasCut: false });
    // On a busy machine the list of processes takes longer than the group is waited for.
    await until(() => !isAlive(Number(readable(pid))));
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function readable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

describe("a path on Windows", () => {
  test("is written with backslashes", () => {
    expect(nativePath("C:/shop/files", "win32")).toBe("C:\\shop\\files");
    expect(nativePath("/shop/files", "linux")).toBe("/shop/files");
  });

  test.each([
    ["C:/shop/files is taken, read and/or write", "C:\\shop\\files is taken, read and/or write"],
    ["remove D:/a/b.json: it is torn", "remove D:\\a\\b.json: it is torn"],
    ['"//server/share/box"', '"\\\\server\\share\\box"'],
    ["see https://example.com/docs and docs/errors.md", "see https://example.com/docs and docs/errors.md"],
  ])("is found in a text: %s", (text, expected) => {
    expect(withNativePaths(text, "win32")).toBe(expected);
    expect(withNativePaths(text, "linux")).toBe(text);
  });
});
