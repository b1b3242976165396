// The store lock between real processes: what its decision put off. Killed holders, waiters that cost nothing, and a fair hand-over.
import { readFile } from "node:fs/promises";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { openStoreLock } from "../../src/locks/index.ts";
import { makeScratch } from "../ports/scratch.ts";
import { makeSite, startLocker } from "./store-lock-site.ts";

/** Takes the lock, says so, and keeps it until it is told anything. */
const keep = `
  const hold = await lock.acquire();
  say("held");
  await told.next();
  await hold.release();
  say("released");`;

describe.each(["os", "table"] as const)("between processes, a store lock whose gate is %s", (gate) => {
  it("excludes, and passes to the one who waits when it is released", async () => {
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
      // The kernel wakes a waiter; the table is looked at four times a second. Neither waits for a lease.
      expect(performance.now() - killedAtMs).toBeLessThan(5000);
      await hold.release();
    }
  });

  it("is free at once for one who only tries, when its holder is dead", async () => {
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

  it("gives everybody a fair share when several want it again and again", async () => {
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
            // Time passes: long enough for the others to come to the line: who is not there cannot be overtaken.
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
  // Seven instances, so that seven wait in the kernel, and not one for all. Node has four threads for files: if waits took them, no file could be read.
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
