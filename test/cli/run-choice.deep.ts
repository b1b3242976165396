// Which lock `holdfast run` takes, and what it refuses.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { findLockRoot, openPathLocks } from "../../src/locks/index.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess, type StartOptions } from "./holdfast-process.ts";

const patience = { timeout: 30_000, interval: 5 };
const stay = ["--", process.execPath, "-e", `console.log("in"); process.stdin.resume()`];

/** The paths that are locked in the path locks of `root` while `holdfast run` has its lock. */
async function lockedIn(root: string, flags: readonly string[], options?: StartOptions): Promise<string[]> {
  const run = new HoldfastProcess(["run", "--quiet", ...flags, ...stay], options);
  expect(await run.hear()).toBe("in");
  await using locks = await openPathLocks(root);
  const held = await locks.list();
  run.endInput();
  expect(await run.ended).toMatchObject({ exitCode: 0, stderr: "" });
  return held.map(({ path }) => path);
}

/** Two links that lead to each other, at this path and beside it. */
function circleAt(path: string): string {
  symlinkSync(`${path}-other`, path);
  symlinkSync(path, `${path}-other`);
  return path;
}

async function newStore(): Promise<string> {
  const root = makeScratch();
  await (await openPathLocks(root)).close();
  return root;
}

describe("the lock that is taken is that of", () => {
  test("the store that --store names, whatever is nearer or in the environment", async () => {
    const [near, far, other] = [await newStore(), await newStore(), await newStore()];
    const env = { HOLDFAST_STORE: other };
    expect(await lockedIn(far, ["--store", far, "--lock", "a/b"], { cwd: near, env })).toEqual(["a/b"]);
    expect(await lockedIn(far, ["--store", far, "--lock", join(far, "c")], { cwd: near, env })).toEqual(["c"]);
  });

  test("the store that $HOLDFAST_STORE names, when there is no --store", async () => {
    const [near, far] = [await newStore(), await newStore()];
    expect(await lockedIn(far, ["--lock", "a"], { cwd: near, env: { HOLDFAST_STORE: far } })).toEqual(["a"]);
    // Empty is as good as not there.
    expect(await lockedIn(near, ["--lock", "a"], { cwd: near, env: { HOLDFAST_STORE: "" } })).toEqual(["a"]);
  });

  test("the nearest store above the path, by whatever way it is reached", async () => {
    const outer = await newStore();
    const inner = join(outer, "x", "inner");
    mkdirSync(join(inner, "below"), { recursive: true });
    expect(await lockedIn(outer, ["--lock", join(inner, "below", "missing")])).toEqual(["x/inner/below/missing"]);
    await (await openPathLocks(inner)).close();
    expect(await lockedIn(inner, ["--lock", "below/missing"], { cwd: inner })).toEqual(["below/missing"]);
    expect(await lockedIn(inner, ["--lock", "."], { cwd: inner })).toEqual([""]);
    const link = join(makeScratch(), "link");
    symlinkSync(join(inner, "below"), link);
    expect(await lockedIn(inner, ["--lock", join(link, "missing")])).toEqual(["below/missing"]);
  });

  test("a semaphore file beside the path when there is no store above, which is said once", async () => {
    const directory = realpathSync(makeScratch());
    const run = new HoldfastProcess(["run", "--lock", "./stock", ...stay], { cwd: directory });
    expect(await run.hear()).toBe("in");
    expect(readdirSync(directory)).toContain("stock.lock");
    const busy = await holdfast(["run", "--lock", "stock", "-n", "--json", "--", "true"], { cwd: directory });
    expect(busy.exitCode).toBe(75);
    // One line of JSON, and nothing for people.
    expect(JSON.parse(busy.stderr)).toMatchObject({ error: { code: "LOCK_TIMEOUT" } });
    run.endInput();
    const { exitCode, stderr } = await run.ended;
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: `holdfast: no store above ./stock: locking the semaphore file ./stock.lock\n`,
    });
    expect(existsSync(join(directory, "stock.lock"))).toBe(false);
    expect(existsSync(join(directory, ".holdfast"))).toBe(false);
  });

  test("a semaphore file that --semaphore names, though a store is near", async () => {
    const root = await newStore();
    const file = join(root, "job.lock");
    const run = new HoldfastProcess(["run", "--lock", join(root, "a"), "--semaphore", file, ...stay]);
    expect(await run.hear()).toBe("in");
    expect(existsSync(file)).toBe(true);
    run.endInput();
    expect(await run.ended).toMatchObject({ exitCode: 0, stderr: "" });
    expect(existsSync(file)).toBe(false);
  });
});

describe("a process that took the semaphore file before there was a store", () => {
  test("keeps out every later process, by whatever way it comes, until it ends", async () => {
    const root = makeScratch();
    const holder = new HoldfastProcess(["run", "--lock", join(root, "import"), ...stay]);
    expect(await holder.hear()).toBe("in");
    const late = ["--lock", join(root, "import")];
    const named = ["--store", root, "--lock", "import"];
    await (await openPathLocks(root)).close();
    for (const flags of [late, named, [...late, "--shared"]]) {
      const { exitCode, stdout, stderr } = await holdfast(["run", ...flags, "-n", "--", "echo", "in too"]);
      expect({ exitCode, stdout }).toEqual({ exitCode: 75, stdout: "" });
      expect(stderr).toMatch(/import\.lock is held by process \d+/);
    }
    const waiting = new HoldfastProcess(["run", "--quiet", ...late, "--", "echo", "after it"]);
    await using locks = await openPathLocks(root);
    await vi.waitFor(async () => expect(await locks.list()).toMatchObject([{ path: "import" }]), patience);
    holder.endInput();
    expect(await holder.ended).toMatchObject({ exitCode: 0 });
    expect(await waiting.ended).toMatchObject({ exitCode: 0, stdout: "after it\n", stderr: "" });
    expect(existsSync(join(root, "import.lock"))).toBe(false);
  });

  test("keeps no process out when it is dead", async () => {
    const root = makeScratch();
    const holder = new HoldfastProcess(["run", "--lock", join(root, "import"), ...stay]);
    expect(await holder.hear()).toBe("in");
    holder.kill("SIGKILL");
    await holder.exited();
    expect(existsSync(join(root, "import.lock"))).toBe(true);
    await (await openPathLocks(root)).close();
    expect(await holdfast(["run", "--store", root, "--lock", "import", "-n", "--", "true"])).toMatchObject({
      exitCode: 0,
    });
    expect(existsSync(join(root, "import.lock"))).toBe(false);
  });

  test("is not taken for a file that only has such a name, which stays what it is", async () => {
    const root = await newStore();
    writeFileSync(join(root, "yarn.lock"), "# yarn lockfile v1\n");
    utimesSync(join(root, "yarn.lock"), 1_000_000_000, 1_000_000_000);
    expect(await holdfast(["run", "--lock", join(root, "yarn"), "-n", "--", "true"])).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(root, "yarn.lock"), "utf8")).toBe("# yarn lockfile v1\n");
  });

  test.skipIf(process.platform === "win32")("keeps out a user that may not even read its file", async () => {
    const root = makeScratch();
    chmodSync(root, 0o777);
    await asOrdinaryUser(async () => await (await openPathLocks(root)).close());
    writeFileSync(join(root, "import.lock"), `pid=${process.pid}\ntimestamp=1000000000\n`, { mode: 0 });
    utimesSync(join(root, "import.lock"), 1_000_000_000, 1_000_000_000);
    let stderr = "";
    const streams = { stdout: { write: () => undefined }, stderr: { write: (text: string) => (stderr += text) } };
    const args = ["run", "--store", root, "--lock", "import", "--timeout", "150ms", "true"];
    expect(await asOrdinaryUser(() => runCommandLine(args, streams, new AbortController().signal))).toBe(75);
    expect(stderr).toMatch(/import\.lock may be the semaphore file of a running process/);
    expect(existsSync(join(root, "import.lock"))).toBe(true);
  });

  test("asks the store when that was made while it waited for the file", async () => {
    const root = makeScratch();
    const holder = new HoldfastProcess(["run", "--lock", join(root, "import"), ...stay]);
    expect(await holder.hear()).toBe("in");
    const late = new HoldfastProcess(["run", "--lock", join(root, "import"), "--", "echo", "in too"]);
    await late.hasSaid("locking the semaphore file");
    await using locks = await openPathLocks(root);
    const hold = await locks.acquire("import");
    holder.endInput();
    await vi.waitFor(async () => expect((await locks.list())[0]?.waiting).toHaveLength(1), patience);
    await hold.release();
    expect(await late.ended).toMatchObject({ exitCode: 0, stdout: "in too\n" });
    expect(existsSync(join(root, "import.lock"))).toBe(false);
  });
});

describe.skipIf(process.platform === "win32")(
  "a path by way of a symbolic link is the one that the system means:",
  () => {
    /** `link` leads to `far/sub`, and `gone` to `far/sub/none`, which is not there. */
    function newSite(): { readonly directory: string; readonly far: string } {
      const directory = makeScratch();
      const far = join(directory, "far");
      mkdirSync(join(far, "sub"), { recursive: true });
      mkdirSync(join(directory, "sub"));
      symlinkSync(join(far, "sub"), join(directory, "link"));
      symlinkSync(join("far", "sub", "none"), join(directory, "gone"));
      return { directory, far };
    }

    test.each([
      ["link/../sub/x", "sub/x.lock"],
      ["./link/./../../sub/../far/x", "x.lock"],
      ["link/x", "sub/x.lock"],
      ["gone", "sub/none.lock"],
    ])("%s, as a semaphore file", async (path, file) => {
      const { directory: cwd, far } = newSite();
      const run = new HoldfastProcess(["run", "--lock", path, ...stay], { cwd });
      expect(await run.hear()).toBe("in");
      expect(existsSync(join(far, file))).toBe(true);
      run.endInput();
      expect(await run.ended).toMatchObject({ exitCode: 0 });
    });

    test.each([
      ["link/../sub/x", "sub/x"],
      ["gone", "sub/none"],
    ])("%s, in the nearest store", async (path, inside) => {
      const { directory: cwd, far } = newSite();
      await (await openPathLocks(far)).close();
      expect(await lockedIn(far, ["--lock", path], { cwd })).toEqual([inside]);
    });

    test("link/../x, in a store that is named", async () => {
      const { directory, far } = newSite();
      for (const root of [directory, far]) await (await openPathLocks(root)).close();
      expect(await lockedIn(directory, ["--store", directory, "--lock", "link/../x"])).toEqual(["far/x"]);
      expect(await lockedIn(far, ["--store", join(directory, "link") + "/..", "--lock", "x"])).toEqual(["x"]);
      await using locks = await openPathLocks(directory);
      await using _ = await locks.acquire("far/x");
      const listed = await holdfast(["locks", "list", directory, "link/../x", "--json"]);
      expect(JSON.parse(listed.stdout)).toMatchObject({ path: "far/x" });
      expect(await holdfast(["locks", "break", directory, "link/../x"])).toMatchObject({ exitCode: 0 });
    });
  },
);

describe("the root of the locks of a path", () => {
  test("is the tree of files of a store, also before anything was locked there; nothing is made", async () => {
    const store = makeScratch();
    const root = join(store, "files");
    expect(await findLockRoot(join(root, "a"))).toBe(undefined);
    await (await openStore(store)).close();
    const before = readdirSync(store);
    expect(await findLockRoot(join(root, "a", "b"))).toEqual({ root, path: "a/b", hasLocks: false });
    for (const path of [store, root]) expect(await findLockRoot(path)).toEqual({ root, path: "", hasLocks: false });
    expect(await findLockRoot(join(store, "events", "main"))).toBe(undefined);
    expect(readdirSync(store)).toEqual(before);
    await (await openPathLocks(store)).close();
    expect(await findLockRoot(join(root, "a"))).toEqual({ root, path: "a", hasLocks: true });
    await expect(findLockRoot(join(store, "holdfast.json", "x"))).rejects.toMatchObject({ errno: "ENOTDIR" });
  });

  test("is that tree also for `run`, which finds the store above a path, or is told of it", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory, { name: "till 3" });
    await using hold = await (await store.locks()).acquire("stock/report.csv");
    const busy = ["-n", "--", process.execPath, "-e", ""];
    for (const args of [
      ["--lock", join(directory, "files", "stock", "report.csv")],
      ["--store", directory, "--lock", "stock/report.csv"],
      ["--store", join(directory, "files"), "--lock", "stock", "--tree"],
    ])
      expect(await holdfast(["run", ...args, ...busy])).toMatchObject({ exitCode: 75 });
    expect((await holdfast(["locks", "list", directory])).stdout).toContain("(till 3)");
    const listed = await holdfast(["locks", "list", directory, "--json"]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ path: "stock/report.csv", fence: hold.fence });
    expect(await holdfast(["locks", "break", directory, "stock/report.csv"])).toMatchObject({ exitCode: 0 });
    expect(await holdfast(["run", "--store", directory, "--lock", "stock/report.csv", ...busy])).toMatchObject({
      exitCode: 0,
    });
  });
});

test("where the directory of the lock is missing, `run` ends with 66, and nothing is run", async () => {
  const missing = join(makeScratch(), "never");
  for (const [flags, message] of [
    [["--store", join(missing, "store"), "--lock", "a"], "never does not exist. Mount"],
    [["--semaphore", join(missing, "x.lock")], "its directory is not there"],
  ] as const) {
    const { exitCode, stdout, stderr } = await holdfast(["run", ...flags, "--", "echo", "in"]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 66, stdout: "" });
    expect(stderr).toContain(message);
  }
});

describe("wrong usage of `run` ends with 2, and nothing is run:", () => {
  const cases: Readonly<Record<string, readonly [args: (file: string) => readonly string[], message: RegExp]>> = {
    "no command": [(file) => ["--lock", file], /missing required argument 'CMD'/],
    "nothing to lock": [() => [], /say what to lock/],
    "an empty path": [() => ["--lock", ""], /say what to lock/],
    "no wait and a wait": [(file) => ["--lock", file, "-n", "--timeout", "1s"], /cannot be used with/],
    "a store for a semaphore file": [(file) => ["--semaphore", file, "--store", "."], /cannot be used with/],
    "a path behind links in a circle": [(file) => ["--lock", join(circleAt(file), "a")], /lead in a circle/],
    "a tree for a semaphore file": [(file) => ["--semaphore", file, "--tree"], /no --tree, no --shared/],
    "a shared lock without a store": [(file) => ["--lock", file, "--shared"], /need a store/],
    "an exit code that is none": [(file) => ["--lock", file, "--busy-exit", "256"], /from 0 to 255/],
    "a wait that is none": [(file) => ["--lock", file, "--timeout", "soon"], /A duration has a unit: write 30s/],
    "a path out of the store": [(file) => ["--store", file, "--lock", "../x"], /leads out of the root/],
  };
  test.each(Object.entries(cases))("%s", async (title, [args, message]) => {
    let stderr = "";
    const streams = { stdout: { write: () => undefined }, stderr: { write: (text: string) => (stderr += text) } };
    const command = title === "no command" ? [] : ["--", process.execPath, "-e", "process.exit(9)"];
    const given = args(join(makeScratch(), "never"));
    const exitCode = await runCommandLine(["run", ...given, ...command], streams, new AbortController().signal);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(message) as string });
  });
});
