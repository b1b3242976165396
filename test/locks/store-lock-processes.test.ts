// The store lock between real processes: what its decision put off. Killed holders, waiters that
// cost nothing, and a fair hand-over.
import { readFile } from "node:fs/promises";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openStoreLock } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeSite, startLocker } from "./store-lock-site.ts";

/** Takes the lock, says so, and keeps it until it is told anything. */
const keep = `
  const hold = await lock.acquire();
  say("held");
  await told.next();
  await hold.release();
  say("released");`;

describe.each(["os", "table"] as const)("between processes, a store lock whose gate is %s", (gate) => {
  it("excludes, and passes to the waiter when it is released", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open({ timeoutMs: 30_000 });
    const child = startLocker(directory, keep);
    expect(await child.hear()).toBe("held");
    expect(await lock.tryAcquire()).toBe(undefined);
    await expect(lock.acquire({ timeoutMs: 20 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT", path: lock.path });
    const waiting = lock.acquire();
    child.tell("release");
    await (await waiting).release();
    expect(await child.hear()).toBe("released");
  });

  it("names its present holder, and not one that was killed", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    const child = startLocker(directory, keep);
    expect(await child.hear()).toBe("held");
    const holder = { pid: child.process.pid, host: hostname() };
    await expect(lock.acquire({ timeoutMs: 20 })).rejects.toMatchObject({ blockedBy: [{ holder }] });
    await expect(lock.acquire({ timeoutMs: 0 })).rejects.toThrow(`process ${child.process.pid} on ${hostname()}`);
    expect(await lock.findHolder()).toMatchObject({ path: lock.path, holder });
    await child.end("SIGKILL");
    if (gate === "os") expect(await lock.findHolder()).toBe(undefined);
  });

  it("lets a waiter in at once when its holder is killed", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    for (let round = 0; round < 3; round++) {
      const child = startLocker(directory, keep);
      expect(await child.hear()).toBe("held");
      const waiting = lock.acquire({ timeoutMs: 30_000 });
      const killedAtMs = performance.now();
      await child.end("SIGKILL");
      const hold = await waiting;
      // A killed holder wakes no waiter: the OS lock is retried every few milliseconds, the table
      // is read four times a second. Neither waits for a lease.
      expect(performance.now() - killedAtMs).toBeLessThan(5000);
      await hold.release();
    }
  });

  it("is free at once for tryAcquire when its holder is dead", async () => {
    const { directory, open } = makeSite(gate);
    const lock = await open();
    const child = startLocker(directory, keep);
    expect(await child.hear()).toBe("held");
    await child.end("SIGKILL");
    const hold = await lock.tryAcquire();
    expect(hold).toBeDefined();
    await hold?.release();
  });

  it("loses no update of a file that several processes read, change and write", async () => {
    const { directory } = makeSite(gate);
    const [processes, rounds] = [4, 25];
    writeFileSync(join(directory, "counter"), "0");
    const children = Array.from({ length: processes }, () =>
      startLocker(
        directory,
        `
        const counter = directory + "/counter";
        for (let round = 0; round < ${rounds}; round++)
          await lock.withLock(async () => {
            const count = Number(fs.readFileSync(counter, "utf8"));
            await new Promise((resolve) => setImmediate(resolve));
            fs.writeFileSync(counter, String(count + 1));
          });
        say("done");`,
      ),
    );
    for (const child of children) expect(await child.hear()).toBe("done");
    expect(readFileSync(join(directory, "counter"), "utf8")).toBe(String(processes * rounds));
  });

  it("gives every process a fair share when several keep asking", async () => {
    const { directory } = makeSite(gate);
    const [processes, roundsInAll] = [4, 240];
    const children = Array.from({ length: processes }, (_, index) =>
      startLocker(
        directory,
        `
        const [name, log] = [args[0], directory + "/log"];
        say("ready");
        await told.next();
        for (let isOver = false; !isOver; )
          await lock.withLock(async () => {
            isOver = fs.readFileSync(log, "utf8").length >= ${roundsInAll};
            if (!isOver) fs.appendFileSync(log, name);
            // Time passes: so that the others queue. A process must wait to be overtaken.
            await new Promise((resolve) => setTimeout(resolve, 1));
          });
        say("done");`,
        String(index),
      ),
    );
    writeFileSync(join(directory, "log"), "");
    for (const child of children) expect(await child.hear()).toBe("ready");
    for (const child of children) child.tell("go");
    for (const child of children) expect(await child.hear()).toBe("done");
    const log = readFileSync(join(directory, "log"), "utf8");
    expect(log).toHaveLength(roundsInAll);
    const shares = children.map((_, index) => log.split("").filter((name) => name === String(index)).length);
    // Of what each would have if all had the same.
    expect(Math.min(...shares) / (roundsInAll / processes)).toBeGreaterThan(0.5);
  });
});

describe("a wait for a store lock that was given up", () => {
  it("blocks no other process, even if its own is busy when its turn comes", async () => {
    const { directory, open } = makeSite("os");
    const lock = await open();
    const hold = await lock.acquire();
    const quitter = startLocker(
      directory,
      `
      const failure = await lock.acquire({ timeoutMs: 50 }).catch((error) => error);
      await lock.close();
      say(failure.code);
      for (;;);`,
    );
    expect(await quitter.hear()).toBe("LOCK_TIMEOUT");
    await hold.release();
    const other = await open();
    await (await other.acquire({ timeoutMs: 0 })).release();
    await quitter.end("SIGKILL");
  });

  it("lets its process end, though the lock is still held", async () => {
    const { directory, open } = makeSite("os");
    const hold = await (await open()).acquire();
    const script = `
      import { openStoreLock } from ${JSON.stringify(new URL("../../dist/locks/index.js", import.meta.url).href)};
      const lock = await openStoreLock(${JSON.stringify(directory)});
      await lock.acquire({ timeoutMs: 50 }).catch((error) => console.log(error.code));
      await lock.close();`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const [[said], [exitCode]] = await Promise.all([once(child.stdout, "data"), once(child, "exit")]);
    expect([String(said).trim(), exitCode]).toEqual(["LOCK_TIMEOUT", 0]);
    await hold.release();
  });

  it.runIf(process.platform === "linux")(
    "leaves no thread and no descriptor, however often it is given up",
    async () => {
      const { directory, open } = makeSite("os");
      const hold = await (await open()).acquire();
      const leftovers = (): { threads: number; descriptors: number } => ({
        threads: Number(/Threads:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]),
        descriptors: readdirSync("/proc/self/fd").length,
      });
      const before = leftovers();
      for (let round = 0; round < 40; round++) {
        const lock = await openStoreLock(directory);
        await expect(lock.acquire({ timeoutMs: 1 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        await lock.close();
      }
      const after = leftovers();
      expect(after.threads - before.threads).toBeLessThan(10);
      expect(after.descriptors - before.descriptors).toBeLessThan(10);
      await hold.release();
    },
  );
});

it("a store lock is the same for processes that open a new directory at the same time", async () => {
  const directory = join(makeScratch(), "new");
  const children = Array.from({ length: 4 }, () =>
    startLocker(
      directory,
      `
      for (let round = 0; round < 5; round++)
        await lock.withLock(async () => {
          fs.writeFileSync(directory + "/inside", "", { flag: "wx" });
          await new Promise((resolve) => setImmediate(resolve));
          fs.unlinkSync(directory + "/inside");
        });
      say(lock.gate);`,
    ),
  );
  for (const child of children) expect(await child.hear()).toBe("os");
});

it("seven waits for a store lock do not hold up the other work of their process", async () => {
  const { directory } = makeSite("os");
  const child = startLocker(directory, keep);
  expect(await child.hear()).toBe("held");
  // Seven instances, so that seven wait, and not one for all. Node has four threads for files: if
  // waits took them, no file could be read.
  const waiters = await Promise.all(Array.from({ length: 7 }, () => openStoreLock(directory, { timeoutMs: 60_000 })));
  const entered = vi.fn();
  const waits = waiters.map(async (lock) => await lock.withLock(async () => void entered()));
  const path = join(directory, "gate.json");
  const startMs = performance.now();
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 8 }, () => readFile(path)));
  expect(performance.now() - startMs).toBeLessThan(3000);
  expect(entered).not.toHaveBeenCalled();
  child.tell("release");
  await Promise.all(waits);
  expect(entered).toHaveBeenCalledTimes(7);
  await Promise.all(waiters.map((lock) => lock.close()));
});
