// The semaphore on a real disk, in one process: what each call promises, and what lies on the disk.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path/posix";
import { describe, expect, it } from "vitest";
import { parseLockFile, Semaphore } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";

function newPath(): string {
  return join(makeScratch(), "job.lock");
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);
// Above what a kernel gives out: no process of the machine that runs this test can have it.
const deadPid = 4_999_999;
const oldLock = (): string => `pid=${deadPid}\ntimestamp=${nowSeconds() - 7200}\n`;

describe("a semaphore", () => {
  it("touches nothing before it is used, and leaves nothing behind when it is released", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    expect(semaphore.path).toBe(path);
    expect(readdirSync(join(path, ".."))).toEqual([]);
    const hold = await semaphore.acquire();
    expect(readdirSync(join(path, ".."))).toEqual(["job.lock"]);
    await hold.release();
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  it("writes who holds it as the protocol says, with the time when it was acquired", async () => {
    const path = newPath();
    const before = nowSeconds();
    const hold = await new Semaphore(path).acquire({ tag: "deploy" });
    const text = readFileSync(path, "utf8");
    expect(text).toMatch(/^pid=\d+\ntimestamp=\d+\ntag=deploy\ntoken=[0-9a-z]{26}\nhost=.+\n/);
    const info = parseLockFile(text);
    expect(info).toEqual({ pid: process.pid, timestamp: expect.any(Number) as number, tag: "deploy" });
    expect(info?.timestamp).toBeGreaterThanOrEqual(before);
    expect(info?.timestamp).toBeLessThanOrEqual(nowSeconds());
    expect(hold.info).toEqual(info);
    expect(Math.floor(hold.acquiredAt.getTime() / 1000)).toBe(info?.timestamp);
    expect(Object.isFrozen(hold.info)).toBe(true);
    await hold.release();
  });

  it("has a tag of one line, and none when nothing is left of it", async () => {
    const path = newPath();
    for (const [tag, written] of [
      ["a\nb", "a b"],
      ["👩‍🚒 größe", "👩‍🚒 größe"],
      ["\n", undefined],
      ["", undefined],
      [undefined, undefined],
    ] as const) {
      const hold = await new Semaphore(path).tryAcquire({ tag });
      expect(parseLockFile(readFileSync(path, "utf8"))?.tag).toBe(written);
      expect(hold?.info.tag).toBe(written);
      await hold?.release();
    }
  });

  it.skipIf(process.platform === "win32")("can be read by its own user only, or by all when asked", async () => {
    const path = newPath();
    for (const [mode, expected] of [
      [undefined, 0o600],
      [0o600, 0o600],
      [0o644, 0o644],
    ] as const)
      for (const form of ["file", "directory"] as const) {
        const hold = await new Semaphore(path, { mode, form }).acquire();
        expect(statSync(form === "file" ? path : join(path, "owner")).mode & 0o777).toBe(expected);
        await hold.release();
      }
  });

  it("is had by one at a time: undefined for the other, in the same process as well", async () => {
    const path = newPath();
    const [one, other] = [new Semaphore(path), new Semaphore(path)];
    const hold = await one.tryAcquire();
    expect(hold).toBeDefined();
    expect(await other.tryAcquire()).toBe(undefined);
    expect(await one.tryAcquire()).toBe(undefined);
    await hold?.release();
    const again = await other.tryAcquire();
    expect(again).toBeDefined();
    await again?.release();
  });

  it("goes from hand to hand a hundred times", async () => {
    const path = newPath();
    for (let round = 0; round < 100; round++) {
      await using hold = await new Semaphore(path, { fsync: false }).acquire({ timeoutMs: 0 });
      expect(hold.info.pid).toBe(process.pid);
    }
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  it("works at paths with spaces and special characters, and relative to the working directory", async () => {
    for (const name of [
      "a b.lock",
      process.platform === "win32" ? "ä'$;&.lock" : "ä'\"$;&.lock",
      "a..b",
      "..hidden",
      "x".repeat(200),
    ]) {
      await using _hold = await new Semaphore(join(makeScratch(), name)).acquire({ timeoutMs: 0 });
    }
    expect(new Semaphore("some.lock").path).toBe(join(process.cwd(), "some.lock"));
  });

  it("releases after the work, also when the work fails, and passes on what it gave or threw", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    const result = await semaphore.withLock(async (hold) => {
      expect(existsSync(path)).toBe(true);
      expect(hold.info.tag).toBe("inside");
      return "done";
    }, { tag: "inside" }); // prettier-ignore
    expect(result).toBe("done");
    const failure = new Error("the work failed");
    await expect(semaphore.withLock(() => Promise.reject(failure))).rejects.toBe(failure);
    expect(existsSync(path)).toBe(false);
  });
});

describe("releasing", () => {
  it("is done once, however often it is asked for", async () => {
    const path = newPath();
    const hold = await new Semaphore(path).acquire();
    await Promise.all([hold.release(), hold.release(), hold[Symbol.asyncDispose]()]);
    await hold.release();
    expect(hold.signal.aborted).toBe(false);
    expect(existsSync(path)).toBe(false);
  });

  it("by a late hold leaves the next holder's lock alone", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    const first = await semaphore.acquire();
    await first.release();
    const second = await semaphore.acquire();
    await first.release();
    expect(existsSync(path)).toBe(true);
    await second.release();
  });

  it("by path ends the hold of this process, and says NOT_HELD when there is none", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    await expect(semaphore.release()).rejects.toMatchObject({ code: "NOT_HELD", path, action: "fix-caller" });
    const hold = await semaphore.acquire();
    await semaphore.release();
    expect(existsSync(path)).toBe(false);
    await hold.release();
    expect(hold.signal.aborted).toBe(false);
    await expect(semaphore.release()).rejects.toMatchObject({ code: "NOT_HELD" });
  });

  it("never removes the lock of another program without force, not even one with this pid", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    for (const pid of [4711, process.pid, 1]) {
      writeFileSync(path, `pid=${pid}\ntimestamp=${nowSeconds()}\ntag=theirs\n`);
      await expect(semaphore.release()).rejects.toMatchObject({
        code: "NOT_HELD",
        message: expect.stringMatching(`process ${pid} since .* \\("theirs"\\) holds it`) as string,
      });
      expect(existsSync(path)).toBe(true);
      await semaphore.release({ force: true });
      expect(existsSync(path)).toBe(false);
    }
    // Nothing there is nothing to do.
    await semaphore.release({ force: true });
  });

  it("finds a lock that another has put in its place, leaves it there, and says so by the signal", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    const hold = await semaphore.acquire();
    rmSync(path);
    writeFileSync(path, `pid=${process.pid}\ntimestamp=${hold.info.timestamp}\n`);
    await hold.release();
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", path, action: "reopen" });
    expect(existsSync(path)).toBe(true);
    await expect(semaphore.release()).rejects.toMatchObject({ code: "NOT_HELD" });
  });

  it("of a lock whose directory is gone is no error, and the loss is told by the signal", async () => {
    const directory = join(makeScratch(), "locks");
    mkdirSync(directory);
    const semaphore = new Semaphore(join(directory, "job.lock"));
    const hold = await semaphore.acquire();
    rmSync(directory, { recursive: true });
    await hold.release();
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST" });
    await expect(semaphore.acquire()).rejects.toMatchObject({
      code: "INVALID_PATH",
      path: semaphore.path,
      message: expect.stringContaining("its directory is not there; make it") as string,
    });
    mkdirSync(directory);
    await (await semaphore.acquire()).release();
  });
});

describe("status", () => {
  it("tells whether it is locked, by whom, and whether that is this process", async () => {
    const path = newPath();
    const [semaphore, other] = [new Semaphore(path), new Semaphore(path)];
    expect(await semaphore.status()).toEqual({ locked: false, stale: false, mine: false });
    await using hold = await semaphore.acquire({ tag: "mine" });
    expect(await semaphore.status()).toEqual({ locked: true, info: hold.info, stale: false, mine: true });
    expect(await other.status()).toMatchObject({ mine: true });
  });

  it("does not take a lock for its own because of the pid", async () => {
    const path = newPath();
    writeFileSync(path, `pid=${process.pid}\ntimestamp=${nowSeconds()}\n`);
    expect(await new Semaphore(path).status()).toMatchObject({ locked: true, stale: false, mine: false });
  });

  it("calls a lock stale that is older than staleMs, and one that never goes stale never", async () => {
    const path = newPath();
    writeFileSync(path, oldLock());
    expect(await new Semaphore(path).status()).toMatchObject({ locked: true, stale: true });
    expect(await new Semaphore(path, { staleMs: 7_100_000 }).status()).toMatchObject({ stale: true });
    for (const staleMs of [7_300_000, null, Infinity])
      expect(await new Semaphore(path, { staleMs }).status()).toMatchObject({ locked: true, stale: false });
    expect(existsSync(path)).toBe(true);
  });

  it("does not change anything, five hundred times", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    await using _hold = await semaphore.acquire();
    const text = readFileSync(path, "utf8");
    for (let time = 0; time < 500; time++) expect((await semaphore.status()).locked).toBe(true);
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("a stale lock", () => {
  it("is taken over, in one step and without a trace of the old one", async () => {
    const path = newPath();
    writeFileSync(path, oldLock());
    const hold = await new Semaphore(path).acquire({ timeoutMs: 0, tag: "new" });
    expect(parseLockFile(readFileSync(path, "utf8"))).toEqual(hold.info);
    await hold.release();
    // The guard stays: processes that lock two files of one name do not exclude each other.
    expect(readdirSync(join(path, ".."))).toEqual(["job.lock.guard"]);
  });

  it("is left alone when it may not go stale by age", async () => {
    const path = newPath();
    writeFileSync(path, oldLock());
    expect(await new Semaphore(path, { staleMs: null }).tryAcquire()).toBe(undefined);
    expect(await new Semaphore(path, { staleMs: 7_300_000 }).tryAcquire()).toBe(undefined);
    expect(readFileSync(path, "utf8")).toContain(`pid=${deadPid}`);
  });

  it("is cleaned: true when there was one, false when there is none or a live one", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path);
    expect(await semaphore.clean()).toBe(false);
    writeFileSync(path, oldLock());
    expect(await semaphore.clean()).toBe(true);
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, `pid=4711\ntimestamp=${nowSeconds()}\n`);
    expect(await semaphore.clean()).toBe(false);
    rmSync(path);
    await using _hold = await semaphore.acquire();
    expect(await semaphore.clean()).toBe(false);
    expect(existsSync(path)).toBe(true);
  });
});

describe("the directory form", () => {
  it("is a directory with the record inside, and goes as a whole", async () => {
    const path = newPath();
    const semaphore = new Semaphore(path, { form: "directory" });
    const hold = await semaphore.acquire({ tag: "nfs" });
    expect(readdirSync(path)).toEqual(["owner"]);
    expect(parseLockFile(readFileSync(join(path, "owner"), "utf8"))).toEqual(hold.info);
    expect(await semaphore.tryAcquire()).toBe(undefined);
    expect(await semaphore.status()).toMatchObject({ locked: true, info: hold.info, mine: true, stale: false });
    await hold.release();
    expect(existsSync(path)).toBe(false);
    expect(readdirSync(join(path, ".."))).toEqual(["job.lock.guard"]);
  });

  it("counts as held for the file form, and a file counts as held for it", async () => {
    const path = newPath();
    const [file, directory] = [new Semaphore(path), new Semaphore(path, { form: "directory" })];
    const inDirectory = await directory.acquire();
    expect(await file.tryAcquire()).toBe(undefined);
    expect((await file.status()).locked).toBe(true);
    await inDirectory.release();
    const inFile = await file.acquire();
    expect(await directory.tryAcquire()).toBe(undefined);
    await inFile.release();
  });

  it("takes over a stale directory, and a stale file, and leaves nothing of them", async () => {
    const path = newPath();
    mkdirSync(path);
    writeFileSync(join(path, "owner"), oldLock());
    for (const form of ["directory", "file", "directory"] as const) {
      const semaphore = new Semaphore(path, { form });
      const hold = await semaphore.acquire({ timeoutMs: 0 });
      expect(statSync(path).isDirectory()).toBe(form === "directory");
      await hold.release();
      writeFileSync(path, oldLock());
    }
    expect(readdirSync(join(path, "..")).sort()).toEqual(["job.lock", "job.lock.guard"]);
  });

  it("leaves a directory without a record alone at any age: it may not be a lock", async () => {
    const path = newPath();
    mkdirSync(path);
    const semaphore = new Semaphore(path, { staleMs: 0 });
    expect(await semaphore.tryAcquire()).toBe(undefined);
    expect(await semaphore.status()).toEqual({ locked: true, stale: false, mine: false });
    expect(await semaphore.clean()).toBe(false);
    expect(existsSync(path)).toBe(true);
  });

  it("never removes a directory with other files in it, not even by force", async () => {
    const path = newPath();
    mkdirSync(path);
    writeFileSync(join(path, "precious"), "data");
    for (const form of ["file", "directory"] as const) {
      const semaphore = new Semaphore(path, { form, staleMs: 0 });
      await expect(semaphore.release({ force: true })).rejects.toMatchObject({ code: "INVALID_PATH", path });
    }
    expect(readdirSync(path)).toEqual(["precious"]);
  });
});

describe("a symbolic link", () => {
  it("is the lock that it leads to, whether that is held, free or never was there", async () => {
    const directory = makeScratch();
    mkdirSync(join(directory, "real"));
    const real = join(directory, "real", "job.lock");
    const link = join(directory, "link.lock");
    const chained = join(directory, "chained.lock");
    symlinkSync("real/job.lock", link);
    symlinkSync(link, chained);
    for (const path of [link, chained, join(directory, "real", "job.lock")]) {
      const semaphore = new Semaphore(path);
      const hold = await semaphore.acquire();
      expect(statSync(real).isFile()).toBe(true);
      expect(await new Semaphore(real).tryAcquire()).toBe(undefined);
      expect(await new Semaphore(link).tryAcquire()).toBe(undefined);
      await hold.release();
      expect(existsSync(real)).toBe(false);
    }
    expect(readdirSync(directory).sort()).toEqual(["chained.lock", "link.lock", "real"]);
  });

  it("in the directory above leads to the same lock", async () => {
    const directory = makeScratch();
    mkdirSync(join(directory, "real"));
    symlinkSync("real", join(directory, "alias"));
    await using _hold = await new Semaphore(join(directory, "alias", "job.lock")).acquire();
    expect(await new Semaphore(join(directory, "real", "job.lock")).tryAcquire()).toBe(undefined);
  });

  it("that leads in a circle, or into a directory that is not there, is refused", async () => {
    const directory = makeScratch();
    symlinkSync("circle", join(directory, "circle"));
    symlinkSync("missing/job.lock", join(directory, "dangling"));
    for (const name of ["circle", "dangling"])
      await expect(new Semaphore(join(directory, name)).tryAcquire()).rejects.toMatchObject({ code: "INVALID_PATH" });
  });
});

describe("what a program may ask for", () => {
  it.each(["", "  ", "a\0b", "../job.lock", "/tmp/../etc/job.lock", "a/../../b", "..", "a\\..\\b"])(
    "is refused before anything is touched: the path %j",
    (path) => {
      expect(() => new Semaphore(path)).toThrow(expect.objectContaining({ code: "INVALID_PATH", path }) as Error);
    },
  );

  it.each([
    { staleMs: -1 },
    { staleMs: Number.NaN },
    { retryMs: 0 },
    { retryMs: Number.NaN },
    { retryMs: Infinity },
    { mode: 0o666 as never },
    { form: "pipe" as never },
    { owner: { pid: 0 } },
    { owner: { pid: 1.5 } },
  ])("is refused: %o", (options) => {
    expect(() => new Semaphore("job.lock", options)).toThrow(RangeError);
  });

  it("is refused when it has the wrong type", async () => {
    expect(() => new Semaphore(7 as never)).toThrow(TypeError);
    expect(() => new Semaphore("job.lock", { fsync: "no" as never })).toThrow(TypeError);
    const semaphore = new Semaphore(newPath());
    await expect(semaphore.tryAcquire({ tag: 7 as never })).rejects.toThrow(TypeError);
    await expect(semaphore.acquire({ timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
    await expect(semaphore.acquire({ timeoutMs: "1" as never })).rejects.toThrow(RangeError);
  });

  it("is refused when it cannot be a lock: no directory above it, a file above it, a pipe, a name that is too long", async () => {
    const directory = makeScratch();
    writeFileSync(join(directory, "file"), "");
    for (const path of [
      join(directory, "missing", "job.lock"),
      join(directory, "file", "job.lock"),
      join(directory, "x".repeat(230)),
      "/dev/null",
      "/",
    ]) {
      const call = new Semaphore(path).tryAcquire();
      await expect(call).rejects.toMatchObject({ code: "INVALID_PATH", action: "fix-caller" });
    }
  });
});

describe("docs/format/semaphore.md", () => {
  const page = readFileSync(new URL("../../docs/format/semaphore.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/^```lock\n(.*?)^```$/gms)].map((match) => match[1] ?? "");

  it("has examples that are read as they are meant", () => {
    expect(examples.map((text) => parseLockFile(text))).toEqual([
      { pid: 12345, timestamp: 1703520000, tag: "deploy-v1.2.3" },
      { pid: 17151, timestamp: 1794785554, tag: "nightly backup" },
    ]);
  });

  it("names every key that is written", async () => {
    const path = newPath();
    await using _hold = await new Semaphore(path).acquire({ tag: "t" });
    const keysOf = (text: string): string[] => [...text.matchAll(/^(\w+)=/gm)].map((match) => match[1] ?? "");
    const written = keysOf(readFileSync(path, "utf8"));
    // A machine that has no id of its own writes one key less.
    const shown = keysOf(examples[1] ?? "");
    if (process.platform === "linux") expect(written).toEqual(shown.filter((key) => written.includes(key)));
    for (const key of written) expect(page).toContain(`| \`${key}\``);
  });
});
