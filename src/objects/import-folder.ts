// Imports a folder: puts each of its files into a bucket, under its path as the key.
import { createHash } from "node:crypto";
import type { Cancel } from "../common.ts";
import { isLink } from "../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { readChunks } from "../part/read-chunks.ts";
import type { Disk } from "../ports/disk.ts";
import type { Bucket } from "./model/bucket.ts";

/** How many files are read in parallel. */
const atOnce = 4;

/** Options of `importFolder`. */
export interface ImportOptions extends Cancel {
  /** Prefix of every key. Default: empty. */
  prefix?: string | undefined;
  /** Called now and then with the number of bytes done and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The result of `importFolder`. */
export interface ImportResult {
  /** How many files were put. */
  readonly files: number;
  /** How many bytes were put. */
  readonly bytes: number;
  /** How many files were skipped, because their key already had the same bytes. */
  readonly unchanged: number;
  /** Paths that cannot be imported: neither a file nor a directory, or a name that is not UTF-8. */
  readonly skipped: readonly string[];
}

/** @deprecated Use `ImportResult`. */
export type Imported = ImportResult;

interface FoundFile {
  /** Path relative to the folder. */
  readonly path: string;
  readonly size: number;
}

export interface ImportWork {
  /** The disk of the folder. */
  readonly disk: Disk;
  readonly folder: string;
  readonly bucket: Bucket;
  /** The directory of the object store, which must not be imported into itself. */
  readonly store: string;
}

/**
 * Throws INVALID_PATH, or BAD_DIGEST for a file that changes while it is read. Objects that were
 * put before the failure stay.
 */
export async function importFiles(work: ImportWork, options: ImportOptions): Promise<ImportResult> {
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
    throw holdfastError("INVALID_PATH", `The folder ${folder} cannot be imported: ${why}`, { path: folder });
  };
  const stat = await disk.findStat(folder);
  if (stat === undefined) fail("it does not exist. Is the share mounted?");
  if (stat?.kind !== "directory") fail("it is not a directory.");
  const path = await disk.realPath(folder);
  if (`${store}/`.startsWith(`${path}/`) || `${path}/`.startsWith(`${store}/`))
    fail(`it contains the object store ${store}, or is inside it. Choose another folder.`);
  return path;
}

/** Sorted by name, so that a second run visits the files in the same order. */
async function* filesBelow(disk: Disk, folder: string, below: string, skipped: string[]): AsyncGenerator<FoundFile> {
  const names = (await disk.list(below === "" ? folder : `${folder}/${below}`)).sort();
  for (const [index, name] of names.entries()) {
    const path = below === "" ? name : `${below}/${name}`;
    const stat = await disk.findStat(`${folder}/${path}`);
    // Finds names that are not UTF-8. Such a name is listed with U+FFFD for its invalid bytes, and
    // stat does not find it. If another file really has the name with U+FFFD, that name is listed
    // twice.
    if (name.includes("\ufffd") && (stat === undefined || names[index - 1] === name)) {
      skipped.push(`${folder}/${path}`);
      continue;
    }
    // Symbolic links are not followed: their targets are not part of the folder.
    const kind = (await isLink(disk, `${folder}/${path}`)) ? "other" : stat?.kind;
    if (kind === "directory") yield* filesBelow(disk, folder, path, skipped);
    else if (kind === "file" && stat !== undefined) yield { path, size: stat.size };
    else if (kind !== undefined) skipped.push(`${folder}/${path}`);
  }
}

/** True if the current object has the bytes of the file. Compares the ETag, which is their MD5. */
async function isThere(bucket: Bucket, key: string, disk: Disk, file: string, size: number): Promise<boolean> {
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
