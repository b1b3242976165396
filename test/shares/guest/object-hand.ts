// What a hand in a guest does with an object store on the share: one bucket, objects of so many
// megabytes.
import { createHash } from "node:crypto";
import { isHoldfastError } from "../../../src/errors.ts";
import { openObjects, type ObjectStore, type StoredObject } from "../../../src/objects/index.ts";
import { bucketName, shorten } from "./object-puts.ts";

const megabyte = 1024 * 1024;
const stores = new Map<string, Promise<ObjectStore>>();
const reads = new Map<number, Reading>();
let lastRead = 0;

/** An object that was opened, and whose first piece was read. */
interface Reading {
  readonly object: StoredObject;
  readonly pieces: AsyncIterator<Uint8Array>;
  readonly first: IteratorResult<Uint8Array>;
}

async function bucketOf(directory: string) {
  let store = stores.get(directory);
  if (store === undefined) {
    store = openObjects(directory);
    stores.set(directory, store);
  }
  return await (await store).bucket(bucketName);
}

async function* bytesOf(megabytes: number, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
  for (let number = 0; number < megabytes; number++) {
    const bytes = Buffer.alloc(megabyte, `${process.pid} ${number},`);
    hash.update(bytes);
    yield bytes;
  }
}

export const objectOperations = {
  createBucket: async (directory: string): Promise<void> => {
    await using store = await openObjects(directory);
    await store.createBucket(bucketName);
  },
  createVersionedBucket: async (directory: string): Promise<void> => {
    await using store = await openObjects(directory);
    await store.createBucket(bucketName, { versioning: "enabled" });
  },
  /** Every version of a key with its text, shortened, as a process sees it that has not looked before. */
  readVersions: async (directory: string, key: string): Promise<[versionId: string, text: string][]> => {
    await using store = await openObjects(directory);
    const bucket = await store.bucket(bucketName);
    const found: [string, string][] = [];
    for await (const { versionId } of bucket.versions({ key })) {
      await using object = await bucket.get(key, { versionId });
      found.push([versionId, shorten(await object.text())]);
    }
    return found;
  },
  /** Gives the hash of what was put. */
  putObject: async (directory: string, key: string, megabytes: number): Promise<string> => {
    const hash = createHash("sha256");
    await (await bucketOf(directory)).put(key, bytesOf(megabytes, hash));
    return hash.digest("hex");
  },
  deleteObject: async (directory: string, key: string): Promise<void> => {
    await (await bucketOf(directory)).delete(key);
  },
  /** Opens it and reads the first piece. */
  getObject: async (directory: string, key: string): Promise<number> => {
    const object = await (await bucketOf(directory)).get(key);
    const pieces = object.stream()[Symbol.asyncIterator]();
    reads.set(++lastRead, { object, pieces, first: await pieces.next() });
    return lastRead;
  },
  /** Reads it to its end: the hash of all of it, or why that failed. */
  readObject: async (id: number): Promise<{ readonly hash?: string; readonly failure?: string }> => {
    const reading = reads.get(id);
    if (reading === undefined) throw new RangeError(`There is no object that is read as ${id}.`);
    reads.delete(id);
    const hash = createHash("sha256");
    try {
      for (let next = reading.first; next.done !== true; next = await reading.pieces.next()) hash.update(next.value);
      return { hash: hash.digest("hex") };
    } catch (error) {
      return { failure: isHoldfastError(error) ? error.code : String(error) };
    } finally {
      await reading.object[Symbol.asyncDispose]();
    }
  },
  /** Its size, or the code of the error that a get gives. */
  findObject: async (directory: string, key: string): Promise<string> => {
    try {
      await using object = await (await bucketOf(directory)).get(key);
      return `${object.size / megabyte} MB`;
    } catch (error) {
      if (isHoldfastError(error)) return error.code;
      throw error;
    }
  },
  listObjects: async (directory: string): Promise<string[]> =>
    (await (await bucketOf(directory)).list()).objects.map(({ key }) => key),
};
