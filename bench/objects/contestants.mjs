// The ways to store a small object that are compared: by hand, and in a bucket that keeps versions.
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ObjectsStorage } from "../../dist/objects/bucket/objects-storage.js";
import { openStorage } from "../../dist/objects/bucket/open-objects.js";
import { DirectoryObjects } from "../../dist/objects/objects.js";

export const body = Buffer.alloc(1024, "x");
export const bucketName = "bench";
/** How many callers a process has at the same time where several are measured. */
export const inFlight = 16;

function syncDirectory(path) {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}

function writeDurably(path) {
  const fd = openSync(path, "wx");
  writeSync(fd, body);
  fsyncSync(fd);
  closeSync(fd);
}

/** Temp file, fsync, rename, fsync of the directory: the newest version replaces the one before it. */
export function openNaive(directory) {
  mkdirSync(directory);
  let n = 0;
  return {
    name: "by hand: temp, fsync, rename, fsync",
    put: async () => {
      const temp = `${directory}/temp-${++n}`;
      writeDurably(temp);
      renameSync(temp, `${directory}/object`);
      syncDirectory(directory);
    },
    get: async () => readFileSync(`${directory}/object`),
  };
}

/** The same under a lock file, with a number for each version, so that all of them are kept. */
export function openLocked(directory) {
  mkdirSync(directory, { recursive: true });
  return {
    put: async () => {
      const lock = `${directory}/lock`;
      for (;;) {
        try {
          closeSync(openSync(lock, "wx"));
          break;
        } catch (error) {
          if (error.code !== "EEXIST") throw error;
          await sleep(1);
        }
      }
      try {
        const number = lastOf(directory) + 1;
        writeDurably(`${directory}/temp`);
        renameSync(`${directory}/temp`, `${directory}/v${number}`);
        syncDirectory(directory);
        writeFileSync(`${directory}/last`, String(number));
      } finally {
        unlinkSync(lock);
      }
    },
    count: () => lastOf(directory),
  };
}

function lastOf(directory) {
  try {
    return Number(readFileSync(`${directory}/last`, "utf8"));
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return 0;
  }
}

/** `isSynced: false` is for what is only made to be measured afterwards. */
export async function openHoldfast(ports, directory, { isSynced = true } = {}) {
  const opened = await openStorage(ports, directory);
  const storage = isSynced ? opened.storage : new ObjectsStorage(opened.storage.ground, directory, { isSynced });
  const store = new DirectoryObjects({ ...opened, storage });
  const bucket =
    (await store.findBucket(bucketName)) ?? (await store.createBucket(bucketName, { versioning: "enabled" }));
  let n = 0;
  return {
    storage,
    store,
    bucket,
    put: () => bucket.put("object", body),
    putNew: () => bucket.put(`${process.pid}/${++n}`, body),
    putMany: () => Promise.all(Array.from({ length: inFlight }, (_, index) => bucket.put(`many/${index}`, body))),
    putManyNew: () =>
      Promise.all(Array.from({ length: inFlight }, () => bucket.put(`${process.pid}/many/${++n}`, body))),
    get: async () => {
      const object = await bucket.get("object");
      try {
        return await object.bytes();
      } finally {
        await object[Symbol.asyncDispose]();
      }
    },
    close: () => store.close(),
  };
}
