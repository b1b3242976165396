// `holdfast run` as a process: a command under a lock is as good as the command alone, and never
// beside another one.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { openStore } from "../../src/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess, main } from "./holdfast-process.ts";

const patience = { timeout: 30_000, interval: 5 };

/** Says "in", and stays until its input ends. */
const stay = ["--", process.execPath, "-e", `console.log("in"); process.stdin.resume()`];
/** Says which signals it gets, each once, and ends with 5 at the second. */
const listen = [
  "--",
  process.execPath,
  "-e",
  `
  let count = 0;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
    process.on(name, () => { console.log(name); if (++count === 2) process.exit(5); });
  console.log("in");
  setInterval(() => {}, 1000);`,
];

type Kind = "a path lock" | "a semaphore file";
/** The flags that lock one and the same thing in `directory`. */
const kinds: readonly [Kind, (directory: string) => string[]][] = [
  ["a path lock", (directory) => ["--quiet", "--store", directory, "--lock", "stock"]],
  ["a semaphore file", (directory) => ["--quiet", "--semaphore", join(directory, "stock.lock")]],
];

function newSite(kind: Kind): { readonly directory: string; readonly lock: string[] } {
  const directory = makeScratch();
  return { directory, lock: kinds.find(([name]) => name === kind)?.[1](directory) ?? [] };
}

describe.each(kinds)("a command under %s", (kind) => {
  test("ends with its own exit code, or 128 + n after a signal, as in a shell", async () => {
    const { lock } = newSite(kind);
    for (const [script, exitCode] of [
      ["exit 0", 0],
      ["exit 7", 7],
      ["kill -KILL $$", 137],
    ] as const)
      expect(await holdfast(["run", ...lock, "--", "sh", "-c", script])).toMatchObject({ exitCode, signal: null });
  });

  test("has our files, and its arguments as they are", async () => {
    const { lock } = newSite(kind);
    const script = `process.stdin.pipe(process.stdout); console.error(JSON.stringify(process.argv.slice(1)))`;
    const args = ["--json", "--help", "-n", "a b", "$HOME", "--"];
    const run = new HoldfastProcess(["run", ...lock, "--", process.execPath, "-e", script, "--", ...args]);
    run.tell("from our input");
    run.endInput();
    const { exitCode, stdout, stderr } = await run.ended;
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "from our input" });
    expect(JSON.parse(stderr)).toEqual(args);
  });

  test("is never beside another one", async () => {
    const { directory, lock } = newSite(kind);
    writeFileSync(join(directory, "counter"), "0");
    const script = `
      const fs = require("node:fs");
      fs.writeFileSync("inside", "", { flag: "wx" });
      const count = Number(fs.readFileSync("counter", "utf8"));
      // Time passes: so that the others come meanwhile.
      setTimeout(() => { fs.writeFileSync("counter", String(count + 1)); fs.unlinkSync("inside"); }, 20);`;
    const runs = Array.from({ length: 5 }, () =>
      holdfast(["run", ...lock, "--", process.execPath, "-e", script], { cwd: directory }),
    );
    for (const { exitCode } of await Promise.all(runs)) expect(exitCode).toBe(0);
    expect(readFileSync(join(directory, "counter"), "utf8")).toBe("5");
  });

  test("is not run when the lock is not to be had: 75, or what --busy-exit says, and who has it", async () => {
    const { directory, lock } = newSite(kind);
    const holder = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await holder.hear()).toBe("in");
    const touch = ["--", "touch", join(directory, "touched")];
    const busy = await holdfast(["run", ...lock, "-n", ...touch]);
    expect(busy).toMatchObject({ exitCode: 75, stdout: "" });
    expect(busy.stderr).toMatch(/by process \d+.*\n +LOCK_TIMEOUT: Try again/);
    expect(await holdfast(["run", ...lock, "--timeout", "50ms", "--busy-exit", "9", ...touch])).toMatchObject({
      exitCode: 9,
    });
    const json = await holdfast(["run", ...lock, "-n", "--busy-exit", "0", "--json", ...touch]);
    expect(json).toMatchObject({ exitCode: 0, stdout: "" });
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "LOCK_TIMEOUT", exitCode: 0 } });
    expect(existsSync(join(directory, "touched"))).toBe(false);
    holder.endInput();
    expect(await holder.ended).toMatchObject({ exitCode: 0 });
    expect(await holdfast(["run", ...lock, "-n", ...touch])).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(directory, "touched"))).toBe(true);
  });

  test.skipIf(process.platform === "win32")("gets every signal that we get, and decides what comes of it", async () => {
    const { lock } = newSite(kind);
    for (const [first, second] of [
      ["SIGINT", "SIGTERM"],
      ["SIGHUP", "SIGUSR1"],
      ["SIGUSR2", "SIGQUIT"],
    ] as const) {
      const run = new HoldfastProcess(["run", ...lock, ...listen]);
      expect(await run.hear()).toBe("in");
      run.kill(first);
      expect(await run.hear()).toBe(first);
      run.kill(second);
      expect(await run.hear()).toBe(second);
      expect(await run.ended).toMatchObject({ exitCode: 5, signal: null });
    }
    const run = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await run.hear()).toBe("in");
    run.kill("SIGTERM");
    expect(await run.ended).toMatchObject({ exitCode: 143, signal: null });
  });

  test.skipIf(process.platform === "win32")("leaves the lock free at once when we are killed", async () => {
    const { lock } = newSite(kind);
    const holder = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await holder.hear()).toBe("in");
    const waiting = holdfast(["run", ...lock, "--timeout", "20s", "--", "true"]);
    holder.kill("SIGKILL");
    await holder.exited();
    expect(await waiting).toMatchObject({ exitCode: 0 });
    expect(await holdfast(["run", ...lock, "-n", "--", "true"])).toMatchObject({ exitCode: 0 });
    holder.endInput();
    await holder.ended;
  });

  test("that cannot be started ends with 127 or 126 as in a shell, and the lock is free", async () => {
    const { directory, lock } = newSite(kind);
    const missing = await holdfast(["run", ...lock, "--", "no-such-command"]);
    expect(missing).toMatchObject({ exitCode: 127, stdout: "", stderr: "holdfast: no-such-command: not found\n" });
    expect(await holdfast(["run", ...lock, "-n", "--", directory])).toMatchObject({ exitCode: 126, stdout: "" });
    const json = await holdfast(["run", ...lock, "-n", "--json", "--", "no-such-command"]);
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: "NOT_STARTED", action: "fix-caller", exitCode: 127 },
    });
    expect(await holdfast(["run", ...lock, "-n", "--", "true"])).toMatchObject({ exitCode: 0 });
  });
});

describe("what stands behind the command", () => {
  const echo = [process.execPath, "-p", "JSON.stringify(process.argv.slice(1))", "--"];

  test("is its own, also without -- before it", async () => {
    const { directory } = newSite("a path lock");
    const lock = ["--lock", "stock", "--store", directory, "--quiet"];
    const args = ["-n", "--json", "--version", "--help", "--store", "elsewhere", "--", "--timeout"];
    const { exitCode, stdout, stderr } = await holdfast(["run", ...lock, ...echo, ...args]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual(args);
    // Its --json is not ours, and ours is not its.
    const missing = await holdfast(["run", ...lock, "no-such-command", "--json"]);
    expect(missing).toMatchObject({ exitCode: 127, stderr: "holdfast: no-such-command: not found\n" });
    const json = await holdfast(["run", ...lock, "--json", "no-such-command"]);
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { exitCode: 127 } });
  });

  test("does not make up for an option of ours that is none", async () => {
    const { exitCode, stderr } = await holdfast(["run", "--lock", "stock", "--no-such", "--json", "true"]);
    expect(exitCode).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({ error: { message: "unknown option '--no-such'" } });
  });
});

describe("a lock that is lost while the command runs", () => {
  test.skipIf(process.platform === "win32")("is told at once, the command gets SIGTERM, and the end is 4", async () => {
    const { directory, lock } = newSite("a path lock");
    const run = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await run.hear()).toBe("in");
    expect(await holdfast(["locks", "break", directory, "stock"])).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr } = await run.ended;
    expect(exitCode).toBe(4);
    expect(stderr).toMatch(/^holdfast: The lock on stock .* is no longer held[^\n]*\n +LOCK_LOST: [^\n]*\n$/);
  });

  test("is told also when the command ended before the loss could be noticed", async () => {
    const { directory, lock } = newSite("a path lock");
    const broken = await holdfast(["run", ...lock, "--", process.execPath, main, "locks", "break", directory, "stock"]);
    expect(broken).toMatchObject({ exitCode: 4, stderr: expect.stringContaining("LOCK_LOST") as string });

    const file = join(directory, "stock.lock");
    const script = `require("node:fs").unlinkSync(${JSON.stringify(file)})`;
    const removed = await holdfast(["run", "--semaphore", file, "--", process.execPath, "-e", script]);
    expect(removed).toMatchObject({ exitCode: 4, stderr: expect.stringContaining("LOCK_LOST") as string });
  });

  test.skipIf(process.platform === "win32")(
    "is told when a semaphore file was removed, and the command is ended",
    async () => {
      const { directory, lock } = newSite("a semaphore file");
      const run = new HoldfastProcess(["run", ...lock, ...stay]);
      expect(await run.hear()).toBe("in");
      rmSync(join(directory, "stock.lock"));
      expect(await run.ended).toMatchObject({ exitCode: 4 });
    },
  );
});

describe("wide and shared locks", () => {
  test("--tree locks what is below, and --shared lets others in who share", async () => {
    const directory = makeScratch();
    const run = (...flags: string[]): string[] => ["run", "--store", directory, ...flags];
    const tree = new HoldfastProcess([...run("--lock", "a", "--tree", "--shared"), ...stay]);
    expect(await tree.hear()).toBe("in");
    const touch = ["-n", "--", "true"];
    expect(await holdfast([...run("--lock", "a/b"), ...touch])).toMatchObject({ exitCode: 75 });
    expect(await holdfast([...run("--lock", "a/b", "--shared"), ...touch])).toMatchObject({ exitCode: 0 });
    expect(await holdfast([...run("--lock", "ab"), ...touch])).toMatchObject({ exitCode: 0 });
    tree.endInput();
    await tree.ended;
  });

  test("$HOLDFAST_FENCE grows with every command that could have met another", async () => {
    const { directory, lock } = newSite("a path lock");
    const tell = ["--", "sh", "-c", 'echo "${HOLDFAST_FENCE-none}"'];
    const fences: number[] = [];
    for (let round = 0; round < 3; round++) fences.push(Number((await holdfast(["run", ...lock, ...tell])).stdout));
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    expect(fences[0]).toBeGreaterThan(0);
    const semaphore = await holdfast(["run", "--semaphore", join(directory, "x.lock"), ...tell]);
    expect(semaphore.stdout).toBe("none\n");
  });
});

describe("who waits for the lock", () => {
  /** Resolves when so many stand in the line of the one lock that is held. */
  async function untilWaiting(directory: string, count: number): Promise<void> {
    await using locks = await openPathLocks(directory);
    await vi.waitFor(async () => expect((await locks.list())[0]?.waiting).toHaveLength(count), patience);
  }

  test("comes in as soon as it is free, however long that takes", async () => {
    const { directory, lock } = newSite("a path lock");
    mkdirSync(join(directory, "done"));
    const holder = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await holder.hear()).toBe("in");
    const waiting = Array.from({ length: 2 }, (_, index) =>
      holdfast(["run", ...lock, "--", "touch", join(directory, "done", String(index))]),
    );
    await untilWaiting(directory, 2);
    expect(readdirSync(join(directory, "done"))).toEqual([]);
    holder.endInput();
    for (const { exitCode } of await Promise.all(waiting)) expect(exitCode).toBe(0);
    expect(readdirSync(join(directory, "done")).sort()).toEqual(["0", "1"]);
  });

  test.skipIf(process.platform === "win32")("runs nothing when it is interrupted, and is out of the line", async () => {
    const { directory, lock } = newSite("a path lock");
    const holder = new HoldfastProcess(["run", ...lock, ...stay]);
    expect(await holder.hear()).toBe("in");
    const loud = lock.filter((word) => word !== "--quiet");
    const waiting = new HoldfastProcess(["run", ...loud, "--", "touch", join(directory, "touched")]);
    await untilWaiting(directory, 1);
    waiting.kill("SIGTERM");
    expect(await waiting.ended).toMatchObject({
      exitCode: null,
      signal: "SIGTERM",
      stderr: "holdfast: interrupted, and cleaned up\n",
    });
    await untilWaiting(directory, 0);
    holder.endInput();
    await holder.ended;
    expect(await holdfast(["run", ...lock, "-n", "--", "true"])).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(directory, "touched"))).toBe(false);
  });
});

test("a store that `run --store` makes in a new folder is one that openStore opens", async () => {
  const store = join(makeScratch(), "shop");
  expect(await holdfast(["run", "--store", store, "--lock", "import", "--", "true"])).toMatchObject({ exitCode: 0 });
  await using opened = await openStore(store, { create: false });
  await (await opened.locks()).withLock("import", async () => undefined);
});

test("a wait of more than a second is reported on stderr, with its holder, also where no terminal is", async () => {
  const store = makeScratch();
  await using locks = await openPathLocks(store);
  const hold = await locks.acquire("import");
  const waiting = new HoldfastProcess(["run", "--store", store, "--lock", "import", "--", "true"]);
  await waiting.hasSaid(`import: process ${process.pid} on `);
  await hold.release();
  expect(await waiting.ended).toMatchObject({ exitCode: 0 });
});
