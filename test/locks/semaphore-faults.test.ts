// A semaphore whose disk fails, or whose process dies, at each call in turn: errors have a code,
// and no process is locked out for good.
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import type { SemaphoreHold } from "../../src/locks/semaphore/hold.ts";
import { Semaphore } from "../../src/locks/index.ts";
import { errnos, lostReplies, nfs, type WorldOptions } from "../sites/world.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { lockPath, SemaphoreWorld } from "./semaphore-world.ts";

const callsMax = 60;
const staleLock = "pid=4711\ntimestamp=0\n";

interface Case {
  readonly form: "file" | "directory";
  readonly planted?: string;
  readonly options?: WorldOptions;
}
const cases: Readonly<Record<string, Case>> = {
  "a free file": { form: "file" },
  "a free directory": { form: "directory" },
  "a stale lock": { form: "file", planted: staleLock },
  "a stale file, by a directory": { form: "directory", planted: staleLock },
  "a file system without hard links": { form: "file", options: { quirks: { noHardLinks: true } } },
};

async function prepare({ planted, options = {} }: Case): Promise<SemaphoreWorld> {
  const world = await SemaphoreWorld.make(options);
  if (planted !== undefined) await world.plant(planted);
  return world;
}

/** Compares whole facts, so that a failure names the call that was spoiled. */
function mustBe(
  when: string,
  facts: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, unknown>>,
): void {
  expect({ when, ...facts }).toEqual({ when, ...expected });
}

/** The answer of a call that may fail, but only with an error of ours. */
async function attempt<T>(action: () => Promise<T>): Promise<T | "failed"> {
  try {
    return await action();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return "failed";
  }
}

describe.each(Object.entries(cases))("on %s", (_, plan) => {
  const labels = [...errnos, ...lostReplies];

  it.each(labels)(
    "a disk call that fails with %s during an acquire leaves the lock held by the caller, or free for another process",
    async (label) => {
      for (let at = 1; at <= callsMax; at++) {
        const world = await prepare(plan);
        const ada = world.semaphore("ada", { form: plan.form });
        let hold: SemaphoreHold | "failed" | undefined;
        const came = await world.withFault({ process: "ada", at, label, lasting: false }, async () => {
          hold = await attempt(() => ada.tryAcquire());
        });
        if (!came) return;
        const when = `${label} at call ${at}: ${world.spoiled.join()}`;
        const bob = world.semaphore("bob", { form: plan.form });
        if (hold !== undefined && hold !== "failed") {
          const facts = { forBob: await bob.tryAcquire(), mine: (await ada.status()).mine };
          mustBe(when, facts, { forBob: undefined, mine: true });
          await hold.release();
          mustBe(when, { lost: hold.signal.aborted }, { lost: false });
        }
        // What is left of an attempt that failed is no lock, or one whose process need only end.
        if ((await bob.tryAcquire()) === undefined) {
          world.end("ada");
          await world.advance(3_700_000);
          mustBe(when, { free: (await bob.tryAcquire()) !== undefined }, { free: true });
        }
      }
      throw new Error(`it makes more than ${callsMax} calls`);
    },
  );

  it.each(labels)("a release whose disk call fails with %s can be repeated", async (label) => {
    for (let at = 1; at <= callsMax; at++) {
      const world = await prepare(plan);
      const hold = await world.semaphore("ada", { form: plan.form }).acquire();
      const came = await world.withFault({ process: "ada", at, label, lasting: false }, async () => {
        await attempt(() => hold.release());
      });
      if (!came) return;
      await hold.release();
      const when = `${label} at call ${at}: ${world.spoiled.join()}`;
      const next = await world.semaphore("bob", { form: plan.form }).tryAcquire();
      mustBe(when, { lost: hold.signal.aborted, free: next !== undefined }, { lost: false, free: true });
    }
    throw new Error(`it makes more than ${callsMax} calls`);
  });

  it("a process that is killed at any disk call blocks other processes only until its death is noticed", async () => {
    for (let at = 1; at <= callsMax; at++) {
      const world = await prepare(plan);
      const ada = world.semaphore("ada", { form: plan.form });
      const before = world.calls.length;
      let isDone = false;
      await world.killAtCall("ada", at, async () => {
        const hold = await ada.acquire();
        await hold.release();
        isDone = true;
      });
      if (isDone) {
        expect(world.calls.length - before).toBeGreaterThan(5);
        return;
      }
      world.end("ada");
      const bob = world.semaphore("bob", { form: plan.form, staleMs: 20_000 });
      let taken: SemaphoreHold | undefined;
      void bob.acquire().then((hold) => (taken = hold));
      // A torn file takes ten seconds; a directory without its record as long as any old lock.
      await world.advance(25_000);
      mustBe(`killed at call ${at}`, { free: taken !== undefined }, { free: true });
      await taken?.release();
      await bob.clean();
      await world.advance(3_700_000);
      await bob.clean();
      const left = Object.keys(world.tree("/shared")).filter(
        (path) => !["/shared/", `${lockPath}.guard`].includes(path),
      );
      mustBe(`killed at call ${at}`, { left }, { left: [] });
    }
    throw new Error(`it makes more than ${callsMax} calls`);
  });
});

describe("a release that fails", () => {
  it.each(["read", "unlink"])("at its %s rejects, and is completed later in the background", async (call) => {
    const world = await SemaphoreWorld.make({ volume: nfs });
    const hold = await world.semaphore("ada").acquire();
    let told: unknown;
    // Longer than any test waits.
    await world.withFault({ process: "ada", at: `${call} ${lockPath}`, label: "EIO", lasting: true }, async () => {
      told = await hold.release().catch((error: unknown) => error);
      await world.advance(20_000);
    });
    expect(told).toMatchObject({ code: "IO_ERROR", errno: "EIO" });
    expect(world.text()).toContain("token=");
    await world.advance(10_000);
    expect(world.text()).toBe(undefined);
    await hold.release();
  });
});

describe("orphaned temp files", () => {
  it("are removed by clean when their process is dead, and stay while it lives", async () => {
    const world = await SemaphoreWorld.make();
    const { disk } = world.ports("setup");
    const [dead, alive] = [`${lockPath}.${"d".repeat(26)}.tmp`, `${lockPath}.${"a".repeat(26)}.tmp`];
    const textOf = async (process: string): Promise<string> => {
      const hold = await world.semaphore(process).acquire();
      const text = world.text() ?? "";
      await hold.release();
      return text;
    };
    await disk.createFile(dead, Buffer.from(await textOf("ada")), { sync: false });
    await disk.createFile(alive, Buffer.from(await textOf("bob")), { sync: false });
    world.end("ada");
    const cleo = world.semaphore("cleo");
    expect(await cleo.clean()).toBe(true);
    expect(Object.keys(world.tree("/shared"))).toEqual([alive]);
    expect(await cleo.clean()).toBe(false);
  });

  it("without an owner are removed after an hour, and files with other names stay", async () => {
    const world = await SemaphoreWorld.make();
    const { disk } = world.ports("setup");
    const names = [`${"x".repeat(26)}.tmp`, "backup", "old.tmp", `${"X".repeat(26)}.tmp`];
    for (const name of names) await disk.createFile(`${lockPath}.${name}`, Buffer.from("?"), { sync: false });
    const ada = world.semaphore("ada");
    await world.advance(3_500_000);
    expect(await ada.clean()).toBe(false);
    await world.advance(200_000);
    expect(await ada.clean()).toBe(true);
    expect(Object.keys(world.tree("/shared")).sort()).toEqual(
      names.slice(1).map((name) => `${lockPath}.${name}`).sort(),
    ); // prettier-ignore
  });

  it("that are swept from under a live process are made again", async () => {
    const world = await SemaphoreWorld.make();
    const ada = world.semaphore("ada");
    const { disk } = world.ports("ada");
    // The moment between write and link.
    const link = disk.link.bind(disk);
    let swept = false;
    disk.link = async (from, to) => {
      if (!swept) await world.ports("setup").disk.unlink(from);
      swept = true;
      await link(from, to);
    };
    expect(await ada.tryAcquire()).toBeDefined();
    expect(swept).toBe(true);
  });
});

describe("a directory that cannot be used", () => {
  it.skipIf(process.platform === "win32")(
    "because this user may not write there rejects with NO_PERMISSION, path and remedy",
    async () => {
      const directory = makeScratch();
      chmodSync(directory, 0o555);
      const semaphore = new Semaphore(join(directory, "job.lock"));
      const failure = asOrdinaryUser(() => semaphore.tryAcquire());
      await expect(failure).rejects.toMatchObject({
        code: "NO_PERMISSION",
        path: semaphore.path,
        message: expect.stringContaining("check owner and mode") as string,
      });
      expect(await asOrdinaryUser(() => semaphore.status())).toEqual({ locked: false, stale: false, mine: false });
      chmodSync(directory, 0o755);
    },
  );

  it("because the disk is full rejects with DISK_FULL and leaves nothing behind", async () => {
    const world = await SemaphoreWorld.make();
    for (const form of ["file", "directory"] as const) {
      await world.withFault({ process: "ada", at: "write", label: "ENOSPC", lasting: true }, async () => {
        await expect(world.semaphore("ada", { form }).tryAcquire()).rejects.toMatchObject({
          code: "DISK_FULL",
          path: lockPath,
          message: expect.stringContaining("make room") as string,
        });
      });
      expect(world.text()).toBe(undefined);
    }
  });
});

describe("a lock file", () => {
  it.skipIf(process.platform === "win32")("of another user that cannot be read counts as held", async () => {
    const path = join(makeScratch(), "job.lock");
    writeFileSync(path, staleLock, { mode: 0o600 });
    chmodSync(join(path, ".."), 0o777);
    const semaphore = new Semaphore(path);
    if (process.geteuid?.() !== 0) return;
    expect(await asOrdinaryUser(() => semaphore.status())).toEqual({ locked: true, stale: false, mine: false });
    expect(await asOrdinaryUser(() => semaphore.tryAcquire())).toBe(undefined);
    expect(existsSync(path)).toBe(true);
  });

  it.skipIf(process.platform === "win32" || process.geteuid?.() !== 0)(
    "of another user in a directory with other files is not a lock, and force does not remove it",
    async () => {
      const path = join(makeScratch(), "data");
      mkdirSync(path, { mode: 0o755 });
      writeFileSync(join(path, "owner"), "ada\n", { mode: 0o600 });
      writeFileSync(join(path, "precious"), "1");
      chmodSync(join(path, ".."), 0o777);
      const semaphore = new Semaphore(path, { form: "directory" });
      await expect(asOrdinaryUser(() => semaphore.release({ force: true }))).rejects.toMatchObject({
        code: "INVALID_PATH",
      });
      expect(existsSync(join(path, "precious"))).toBe(true);
    },
  );
});
