// The ways to lock that are compared. Each is opened in a directory of its own; `acquire` waits and
// resolves with the release.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import lockfile from "proper-lockfile";

/**
 * Longer than anybody waits here, so that a lock which is never handed over ends the run instead of
 * hanging it.
 */
const timeoutMs = 60_000;
const record = Buffer.from("pid=12345\ntimestamp=1700000000\ntag=bench\n");

export const contestants = {
  "store lock": async (directory, { openStoreLock }) => {
    const lock = await openStoreLock(directory, { timeoutMs });
    return holding(lock, () => lock.acquire());
  },
  "path lock": async (directory, { openPathLocks }) => {
    const locks = await openPathLocks(directory, { timeoutMs });
    return holding(locks, () => locks.acquire("file"));
  },
  semaphore: async (directory, world) => openSemaphore(directory, world, {}),
  "semaphore, fsync: false": async (directory, world) => openSemaphore(directory, world, { fsync: false }),
  // It tries once unless it is told to retry: every 100 ms is what its users write, every 10 ms is
  // the best of it.
  "proper-lockfile, retry 100 ms": async (directory, world) => openProperLockfile(directory, world, 100),
  "proper-lockfile, retry 10 ms": async (directory, world) => openProperLockfile(directory, world, 10),
  "wx, unlink; poll 100 ms": async (directory, { fs }) =>
    polling(() => {
      fs.closeSync(fs.openSync(`${directory}/lock`, "wx"));
      return () => fs.unlinkSync(`${directory}/lock`);
    }),
  "wx, write, unlink; poll 100 ms": async (directory, { fs }) =>
    polling(() => {
      const fd = fs.openSync(`${directory}/lock`, "wx");
      fs.writeSync(fd, record);
      fs.closeSync(fd);
      return () => fs.unlinkSync(`${directory}/lock`);
    }),
  "mkdir, rmdir; poll 100 ms": async (directory, { fs }) =>
    polling(() => {
      fs.mkdirSync(`${directory}/lock`);
      return () => fs.rmdirSync(`${directory}/lock`);
    }),
  "flock(1)": async (directory, { spawn }) => ({
    acquire: async () => {
      const child = spawn("flock", ["-x", `${directory}/lock`, "cat"], { stdio: ["pipe", "pipe", "inherit"] });
      const ended = once(child, "close");
      // It comes back when the command runs, and that is when the lock is there.
      child.stdin.write("\n");
      await once(child.stdout, "data");
      return async () => {
        child.stdin.end();
        await ended;
      };
    },
    close: async () => undefined,
  }),
};

/** False where there is none: then it is left out, and the table says so. */
export const hasFlock = (process.env.PATH ?? "").split(delimiter).some((bin) => existsSync(join(bin, "flock")));
export const flockNote = hasFlock ? "" : "; there is no flock(1) here";

function holding(lock, acquire) {
  return {
    acquire: async () => {
      const hold = await acquire();
      return () => hold.release();
    },
    close: () => lock.close(),
  };
}

function openSemaphore(directory, { newSemaphore }, options) {
  const semaphore = newSemaphore(`${directory}/lock`, options);
  return holding({ close: async () => undefined }, () => semaphore.acquire({ timeoutMs }));
}

function openProperLockfile(directory, { fs, properLockfileOptions }, retryMs) {
  const file = `${directory}/file`;
  fs.writeFileSync(file, "", { flag: "a" });
  const retries = { retries: timeoutMs / retryMs, factor: 1, minTimeout: retryMs, maxTimeout: retryMs };
  return {
    acquire: () => lockfile.lock(file, { ...properLockfileOptions, retries }),
    close: async () => undefined,
  };
}

function polling(tryOnce) {
  const acquire = async () => {
    for (;;) {
      try {
        return tryOnce();
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
      }
      await sleep(100);
    }
  };
  return { acquire, close: async () => undefined };
}
