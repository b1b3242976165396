// Files under the name of a lock that are not locks. `holdfast run --lock Gemfile` once took a
// day-old Gemfile.lock for a torn lock, and removed it.
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Semaphore } from "../../src/locks/index.ts";
import type { SemaphoreHold } from "../../src/locks/semaphore/hold.ts";
import { makeScratch } from "../sites/scratch.ts";
import { lockPath, SemaphoreWorld } from "./semaphore-world.ts";

const ignore = (): undefined => undefined;

const operations: Readonly<Record<string, (semaphore: Semaphore) => Promise<unknown>>> = {
  status: (semaphore) => semaphore.status(),
  tryAcquire: (semaphore) => semaphore.tryAcquire(),
  "acquire without an end": (semaphore) => semaphore.acquire(),
  "acquire with a time-out of 0": (semaphore) => semaphore.acquire({ timeoutMs: 0 }),
  withLock: (semaphore) => semaphore.withLock(async () => undefined, { timeoutMs: 60_000 }),
  clean: (semaphore) => semaphore.clean(),
  release: (semaphore) => semaphore.release(),
  "release by force": (semaphore) => semaphore.release({ force: true }),
};

function makeOld(path: string): void {
  const yesterday = new Date(Date.now() - 86_400_000);
  utimesSync(path, yesterday, yesterday);
}

describe("a day-old file that is not a lock file is refused, and nothing is made beside it:", () => {
  const contents: Readonly<Record<string, string | Buffer>> = {
    "a Gemfile.lock": "GEM\n  remote: https://rubygems.org/\n  specs:\n    rake (13.0.6)\n",
    "a table": "id,amount\n1,20\n",
    "settings that look like fields": "DATABASE_URL=postgres://db1\nPORT=80\n",
    "the process number of a daemon": "4711\n",
    "a megabyte of bytes": Buffer.from(Array.from({ length: 2 ** 20 }, (_, at) => (at * 7919) % 251)),
    "a megabyte of zeros": Buffer.alloc(2 ** 20),
  };
  for (const [title, bytes] of Object.entries(contents))
    for (const form of ["file", "directory"] as const)
      it.each(Object.keys(operations))(`${title}, for the ${form} form, by %s`, async (operation) => {
        const directory = makeScratch();
        const path = join(directory, "Gemfile.lock");
        writeFileSync(path, bytes);
        makeOld(path);
        for (const owner of [undefined, { pid: process.ppid }])
          await expect(operations[operation]?.(new Semaphore(path, { form, owner }))).rejects.toMatchObject({
            code: "INVALID_PATH",
            path,
            message: expect.stringContaining(
              "is not a lock file: its contents are not a record. Nothing was removed",
            ) as string,
          });
        expect(readdirSync(directory)).toEqual(["Gemfile.lock"]);
        expect(readFileSync(path).equals(Buffer.from(bytes))).toBe(true);
      });
});

describe("a directory with other files in it is refused at once:", () => {
  const fill: Readonly<Record<string, (path: string) => void>> = {
    "a file": (path) => writeFileSync(join(path, "precious"), "1"),
    "a directory": (path) => mkdirSync(join(path, "precious")),
    "a file that has the name of a record": (path) => writeFileSync(join(path, "owner"), "ada\nbob\n"),
    "a directory that has the name of a record": (path) => mkdirSync(join(path, "owner")),
    "an empty file with the name of a record, and another": (path) => {
      writeFileSync(join(path, "owner"), "");
      writeFileSync(join(path, "precious"), "1");
    },
  };
  for (const [title, put] of Object.entries(fill))
    for (const form of ["file", "directory"] as const)
      it.each(Object.keys(operations))(`${title}, for the ${form} form, by %s`, async (operation) => {
        const above = makeScratch();
        const path = join(above, "data");
        mkdirSync(path);
        put(path);
        const before = readdirSync(path);
        makeOld(path);
        await expect(operations[operation]?.(new Semaphore(path, { form }))).rejects.toMatchObject({
          code: "INVALID_PATH",
          path,
          message: expect.stringContaining("is not a lock: it is a directory with files in it") as string,
        });
        expect(readdirSync(above)).toEqual(["data"]);
        expect(readdirSync(path)).toEqual(before);
      });
});

describe("a file that is not a lock file", () => {
  it("is never read into memory when it is too large", async () => {
    const path = join(makeScratch(), "job.lock");
    writeFileSync(path, "");
    truncateSync(path, 2 ** 30);
    const before = process.memoryUsage().arrayBuffers;
    await expect(new Semaphore(path).tryAcquire()).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000);
    expect(statSync(path).size).toBe(2 ** 30);
  });

  it("that replaces a lock ends its hold, and stays", async () => {
    const path = join(makeScratch(), "job.lock");
    const hold = await new Semaphore(path).acquire();
    writeFileSync(path, "id,amount\n");
    await hold.release();
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    expect(readFileSync(path, "utf8")).toBe("id,amount\n");
  });

  it("ends every wait when it appears", async () => {
    const path = join(makeScratch(), "job.lock");
    const hold = await new Semaphore(path).acquire();
    const waiting = new Semaphore(path, { owner: { pid: process.ppid } }).acquire();
    waiting.catch(ignore);
    writeFileSync(path, "id,amount\n");
    await hold.release();
    await expect(waiting).rejects.toMatchObject({ code: "INVALID_PATH" });
  });
});

describe("fields with keys of another program", () => {
  const begun = "version=9\nhost";

  it("count as the beginning of a record for ten seconds, then are refused", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(begun);
    let outcome: unknown;
    void world
      .semaphore("ada")
      .acquire()
      .catch((error: unknown) => (outcome = error));
    expect(await world.semaphore("bob").tryAcquire()).toBe(undefined);
    await world.advance(9_500);
    expect(outcome).toBe(undefined);
    await world.advance(1_000);
    expect(outcome).toMatchObject({ code: "INVALID_PATH", path: lockPath });
    await expect(world.semaphore("cleo").status()).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(world.text()).toBe(begun);
  });

  it("count as a lock as soon as the rest of the record is written", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(begun);
    let hold: SemaphoreHold | undefined;
    void world
      .semaphore("ada")
      .acquire()
      .then((won) => (hold = won));
    await world.advance(8_000);
    const { disk } = world.ports("shell");
    const file = await disk.open(lockPath, "write");
    await file.write(0, Buffer.from(`version=9\nhost=a\npid=4711\ntimestamp=${world.nowSeconds()}\n`));
    await file.close();
    await world.advance(60_000);
    expect(hold).toBe(undefined);
    await disk.unlink(lockPath);
    await world.advance(200);
    expect(hold).toBeDefined();
  });

  it("are not removed by force at any age", async () => {
    const world = await SemaphoreWorld.make();
    await world.plant(begun);
    await expect(world.semaphore("ada").release({ force: true })).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(world.text()).toBe(begun);
  });
});

it("a file that a program puts into a held lock directory survives its release and every sweep", async () => {
  const world = await SemaphoreWorld.make();
  const hold = await world.semaphore("ada", { form: "directory" }).acquire();
  await world.ports("shell").disk.createFile(`${lockPath}/precious`, Buffer.from("1"), { sync: false });
  await hold.release();
  await world.advance(2 * 3_600_000);
  expect(await world.semaphore("bob", { form: "directory" }).clean()).toBe(false);
  const kept = Object.entries(world.tree("/shared")).filter(([path]) => path.endsWith("/precious"));
  expect(kept).toEqual([[expect.stringMatching(/^\/shared\/job\.lock\.[0-9a-z]{26}\.tmp\/precious$/), "1"]]);
});
