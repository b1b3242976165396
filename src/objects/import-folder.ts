// The files of a folder taken in: each becomes an object under its path.
import { createHash } from "node:crypto";
import type { Cancel } from "../common.ts";
import { isLink } from "../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { readChunks } from "../part/read-chunks.ts";
import type { Disk } from "../ports/disk.ts";
import type { ObjectBucket } from "./bucket/object-bucket.ts";

/** So many files are read at the same time. */
const atOnce = 4;

export interface ImportOptions extends Cancel {
  /** What every key begins with. Default: nothing. */
  prefix?: string | undefined;
  /** In bytes. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface Imported {
  /** How many were put, and their bytes. */
  readonly files: number;
  readonly bytes: number;
  /** How many were there already with the same bytes. */
  readonly unchanged: number;
  /** Paths of what is neither a file nor a directory, or has a name that is not UTF-8: no key can have it. */
  readonly skipped: readonly string[];
}

interface FoundFile {
  /** Below the folder. */
  readonly path: string;
  readonly size: number;
}

export interface ImportWork {
  /** Of the folder. */
  readonly disk: Disk;
  readonly folder: string;
  readonly bucket: ObjectBucket;
  /** The directory of the object store, which must not be taken into itself. */
  readonly store: string;
}

/** INVALID_PATH; BAD_DIGEST for a file that changes while it is read. What was put by then stays. */
export async function importFiles(work: ImportWork, options: ImportOptions): Promise<Imported> {
  const { disk, bucket } = work;
  const { prefix = "", signal, onProgress } = options;
  const folder = await findFolder(work);
  const skipped: string[] = [];
  const found: FoundFile[] = [];
  for await (const each of filesBelow(disk, folder, "", skipped)) {
    signal?.throwIfAborted();
    found.push(each);
  }
  const total = found.reduce((sum, { size }) => sum + size, 0);
  const counts = { files: 0, bytes: 0, unchanged: 0 };
  let done = 0;
  const rest = found.values();
  const takeIn = async (): Promise<void> => {
    for (const { path, size } of rest) {
      signal?.throwIfAborted();
      const key = prefix + path;
      const file = `${folder}/${path}`;
      if (await isThere(bucket, key, disk, file, size)) counts.unchanged++;
      else {
        await bucket.put(key, readChunks(disk, file), { size, signal });
        counts.files++;
        counts.bytes += size;
      }
      done += size;
      onProgress?.(done, total);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, takeIn));
  return { ...counts, skipped };
}

async function findFolder({ disk, folder, store }: ImportWork): Promise<string> {
  const fail = (why: string): never => {
    throw holdfastError("INVALID_PATH", `The folder ${folder} cannot be taken in: ${why}`, { path: folder });
  };
  const stat = await disk.findStat(folder);
  if (stat === undefined) fail("it is not there. Is the share mounted?");
  if (stat?.kind !== "directory") fail("it is not a directory.");
  const path = await disk.realPath(folder);
  if (`${store}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${store}/`))
    fail(`the object store ${store} is in it, or it is a part of it. Choose another folder.`);
  return path;
}

/** In the order of their names, so that a second run meets them in the same order. */
async function* filesBelow(disk: Disk, folder: string, below: string, skipped: string[]): AsyncGenerator<FoundFile> {
  const names = (await disk.list(below === "" ? folder : `${folder}/${below}`)).sort();
  for (const [index, name] of names.entries()) {
    const path = below === "" ? name : `${below}/${name}`;
    const stat = await disk.findStat(`${folder}/${path}`);
    // A name that is not UTF-8 comes with these in the place of its bytes, and is not found by that.
    // If another file has that very name, it comes twice.
    if (name.includes("\ufffd") && (stat === undefined || names[index - 1] === name)) {
      skipped.push(`${folder}/${path}`);
      continue;
    }
    // Behind a symbolic link lies what belongs to another place.
    const kind = (await isLink(disk, `${folder}/${path}`)) ? "other" : stat?.kind;
    if (kind === "directory") yield* filesBelow(disk, folder, path, skipped);
    else if (kind === "file" && stat !== undefined) yield { path, size: stat.size };
    else if (kind !== undefined) skipped.push(`${folder}/${path}`);
  }
}

/** Whether the current object has the bytes of the file: by its ETag, which is their MD5. */
async function isThere(bucket: ObjectBucket, key: string, disk: Disk, file: string, size: number): Promise<boolean> {
  try {
    const current = await bucket.head(key);
    if (current.size !== size) return false;
    const md5 = createHash("md5");
    for await (const chunk of readChunks(disk, file)) md5.update(chunk);
    return md5.digest("hex") === current.etag;
  } catch (error) {
    if (isHoldfastError(error, "NO_SUCH_KEY")) return false;
    throw error;
  }
}
