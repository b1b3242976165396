// Shell scripts and this library on one lock file: those that know only the protocol, and those
// that use the command.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseLockFile, Semaphore } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";

const main = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));
const patience = { timeout: 30_000, interval: 10 };

interface Script {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Its exit code. */
  readonly ended: Promise<number | null>;
}

/** `holdfast` is the built command in there; `$1` and so on are `args`. */
function startScript(text: string, ...args: string[]): Script {
  const script = `holdfast() { "${process.execPath}" "${main}" "$@"; }\n${text}`;
  const child = spawn("sh", ["-c", script, "sh", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { child, output: () => output, ended };
}

// Another implementation of the protocol, in a dozen lines.
const protocol = `
lock=$1 count=$2 rounds=$3
now() { date +%s; }
acquire_by_noclobber() {
  until (set -C; printf 'pid=%s\\ntimestamp=%s\\n' $$ "$(now)" > "$lock") 2> /dev/null; do sleep 0.01; done
}
acquire_by_link() {
  printf 'pid=%s\\ntimestamp=%s\\ntag=by link\\n' $$ "$(now)" > "$lock.$$"
  until ln "$lock.$$" "$lock" 2> /dev/null; do sleep 0.01; done
  rm "$lock.$$"
}
release() { rm "$lock"; }
while [ "$rounds" -gt 0 ]; do
  "$4"
  read n < "$count"; echo $((n + 1)) > "$count"
  release
  rounds=$((rounds - 1))
done
`;

const addOne = (count: string): void => writeFileSync(count, `${Number(readFileSync(count, "utf8")) + 1}\n`);

describe.skipIf(process.platform === "win32")("a shell script that knows only the protocol", () => {
  test.each(["acquire_by_noclobber", "acquire_by_link"])("and Holdfast exclude each other: %s", async (acquire) => {
    const directory = makeScratch();
    const [lock, count] = [join(directory, "job.lock"), join(directory, "count")];
    writeFileSync(count, "0\n");
    const [shells, rounds] = [3, 25];
    const scripts = Array.from({ length: shells }, () => startScript(protocol, lock, count, String(rounds), acquire));
    const semaphore = new Semaphore(lock, { retryMs: 10, fsync: false });
    let mine = 0;
    const codes = Promise.all(scripts.map(({ ended }) => ended));
    let isOver = false;
    void codes.then(() => (isOver = true));
    while (!isOver) {
      await semaphore.withLock(async () => addOne(count));
      mine++;
      // Time passes: the scripts look for a free lock now and then only.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(await codes).toEqual(Array(shells).fill(0));
    expect(Number(readFileSync(count, "utf8"))).toBe(shells * rounds + mine);
    expect(mine).toBeGreaterThan(5);
  });

  test("finds a lock of Holdfast held, and reads its holder", async () => {
    const directory = makeScratch();
    const lock = join(directory, "job.lock");
    await using hold = await new Semaphore(lock, { mode: 0o644 }).acquire({ tag: "library" });
    const script = startScript(
      `(set -C; : > "$1") 2> /dev/null && exit 9; ln "$0" "$1" 2> /dev/null && exit 9; sed -n 's/^pid=//p; s/^tag=//p' "$1"`,
      lock,
    );
    expect(await script.ended).toBe(0);
    expect(script.output()).toBe(`${hold.info.pid}\nlibrary\n`);
  });
});

describe.skipIf(process.platform === "win32")("a shell script that uses the command", () => {
  test("acquires, works and releases; several of them lose no update", async () => {
    const directory = makeScratch();
    const [lock, count] = [join(directory, "job.lock"), join(directory, "count")];
    writeFileSync(count, "0\n");
    const text = `
      for round in 1 2; do
        holdfast semaphore acquire "$1" --quiet --timeout 60s --tag "round $round" > /dev/null || exit 1
        read n < "$2"; sleep 0.02; echo $((n + 1)) > "$2"
        holdfast semaphore release "$1" > /dev/null || exit 2
      done`;
    const scripts = Array.from({ length: 3 }, () => startScript(text, lock, count));
    const codes = await Promise.all(scripts.map(({ ended }) => ended));
    // A script that waits for over a second says so.
    const output = scripts.map((script) => script.output().replaceAll(/^holdfast: waiting for .*\n/gm, "")).join("");
    expect({ codes, output }).toEqual({ codes: [0, 0, 0], output: "" });
    expect(readFileSync(count, "utf8")).toBe("6\n");
    expect(existsSync(lock)).toBe(false);
  });

  test("holds the lock as itself, and loses it the moment it is killed", async () => {
    const lock = join(makeScratch(), "job.lock");
    const script = startScript(`holdfast semaphore acquire "$1" && sleep 60; :`, lock);
    await vi.waitFor(() => expect(script.output()).toContain("is held by process"), patience);
    expect(parseLockFile(readFileSync(lock, "utf8"))?.pid).toBe(script.child.pid);
    const semaphore = new Semaphore(lock);
    expect(await semaphore.tryAcquire()).toBe(undefined);
    script.child.kill("SIGKILL");
    await once(script.child, "exit");
    const hold = await semaphore.tryAcquire();
    expect(hold).toBeDefined();
    await hold?.release();
  });

  test("that ends without a release leaves a lock that is free at once", async () => {
    const lock = join(makeScratch(), "job.lock");
    const script = startScript(`holdfast semaphore acquire "$1" --json; exit 0`, lock);
    expect(await script.ended).toBe(0);
    expect(existsSync(lock)).toBe(true);
    const next = startScript(
      `holdfast semaphore status "$1"; holdfast semaphore try-acquire "$1" && holdfast semaphore release "$1"`,
      lock,
    );
    expect(await next.ended).toBe(0);
    expect(next.output()).toMatch(/^locked, but stale\n/);
    expect(existsSync(lock)).toBe(false);
  });

  test("cannot release the lock of another script, except by force", async () => {
    const lock = join(makeScratch(), "job.lock");
    const holder = startScript(`holdfast semaphore acquire "$1" && sleep 60; :`, lock);
    await vi.waitFor(() => expect(holder.output()).toContain("is held"), patience);
    const other = startScript(
      `holdfast semaphore release "$1"; echo "exit $?"; holdfast semaphore try-acquire "$1"; echo "exit $?"
       holdfast semaphore release "$1" --force; echo "exit $?"`,
      lock,
    );
    expect(await other.ended).toBe(0);
    expect(other.output().match(/exit \d+/g)).toEqual(["exit 4", "exit 75", "exit 0"]);
    expect(existsSync(lock)).toBe(false);
  });

  test("names another process with --pid, through any wrapper", async () => {
    const lock = join(makeScratch(), "job.lock");
    const script = startScript(
      `(sh -c '"$@"; exit' sh "$2" "$3" semaphore acquire "$1" --pid $$; exit) && holdfast semaphore release "$1"`,
      lock,
      process.execPath,
      main,
    );
    expect(await script.ended).toBe(0);
    expect(script.output()).toContain(`is held by process ${script.child.pid}`);
    expect(existsSync(lock)).toBe(false);
  });
});
