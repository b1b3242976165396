// The subpath "holdfast/objects": a versioned object store in a shared folder, where no version is
// lost.
import { checkOptions } from "../format/known-options.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { directoryOf, isPostgres } from "../ports/node/location.ts";
import { openLocation, openNodeFolder, openNodePorts } from "../ports/node/ports.ts";
import type { VerifyOptions, VerifyReport } from "../common.ts";
import { listParts, locatePart, type PartLocation } from "../part/location.ts";
import { Findings } from "../part/findings.ts";
import { bodyOfFile } from "../part/read-chunks.ts";
import { objectsPart } from "./bucket/objects-record.ts";
import { importFiles, type Imported, type ImportOptions, type ImportResult } from "./import-folder.ts";
import { openStorage } from "./bucket/open-objects.ts";
import { checkStoreOptions } from "./model/arguments.ts";
import type { ObjectStore, ObjectStoreOptions } from "./model/object-store.ts";
import { DirectoryObjects } from "./objects.ts";
import type * as engine from "../postgres/by-location.ts";

export type * from "./model/bucket.ts";
export type * from "./model/object.ts";
export type * from "./model/object-store.ts";
export type { PartLocation as ObjectsLocation };
export type { Imported, ImportOptions, ImportResult };
export { expiryMs } from "./model/lifecycle.ts";
export { startChecksum, type RunningChecksum } from "../format/running-checksum.ts";

/**
 * Opens the object store in `directory` and creates it if it does not exist. `memory:` opens a new
 * store in memory each time. `postgres://host/db?store=shop` is the object store of a store in a
 * database, for which the package `pg` must be installed. Throws NOT_A_STORE
 * if there is none and `create` is false, WRONG_STORE if it has another id than `id`, and INVALID_PATH if `directory` is
 * a store.
 *
 * @example
 * ```ts
 * await using objects = await openObjects("/mnt/shop/objects");
 * const labels = (await objects.findBucket("labels")) ?? (await objects.createBucket("labels"));
 * await labels.put("2026/a.pdf", bytes, { contentType: "application/pdf" });
 * ```
 */
export async function openObjects(directory: string | URL, options: ObjectStoreOptions = {}): Promise<ObjectStore> {
  checkStoreOptions("openObjects", options);
  if (isPostgres(directory)) return await (await onPostgres()).openObjectsAt(directory, options);
  const { ports, path: given } = await openLocation(directory);
  const { path } = await followLinks(ports.disk, given);
  const { create, id, durability } = options;
  const opened = await openStorage(ports, path, { create, id, isSynced: durability !== "none" });
  return new DirectoryObjects(opened, options);
}

/**
 * Locates an object store. `location` is its directory, or a store that contains it. Creates
 * nothing.
 */
export async function locateObjects(location: string | URL): Promise<PartLocation> {
  if (isPostgres(location)) return await (await onPostgres()).locateObjectsAt(location);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, objectsPart, path, "");
}

/**
 * Returns the directory of the object store at `location`, or of the one in the store at
 * `location`. Returns an empty list if there is none.
 */
export async function listObjectStores(location: string | URL): Promise<string[]> {
  if (isPostgres(location)) return await (await onPostgres()).listObjectStoresAt(location);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, objectsPart, path);
}

/** Checks an object store like `ObjectStore.verify`, even if its record cannot be read. Throws NOT_A_STORE. */
export async function verifyObjects(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  if (isPostgres(directory)) {
    await using objects = await openObjects(directory, { create: false });
    return await objects.verify(options);
  }
  const findings = new Findings();
  const location = { path: directoryOf(directory) };
  const report = await findings.attempt(location, "The record of this object store", async () => {
    await using objects = await openObjects(location.path, { create: false });
    return await objects.verify(options);
  });
  return report ?? { ok: false, checked: 0, problems: findings.problems };
}

/**
 * Puts each file below `folder` into a bucket, with its path as the key. Skips files that already
 * exist with the same bytes, so it can be repeated. Throws NO_SUCH_BUCKET, INVALID_PATH, and
 * BAD_DIGEST if a file changes while it is read.
 */
export async function importFolder(
  objects: ObjectStore,
  bucket: string,
  folder: string | URL,
  options: ImportOptions = {},
): Promise<ImportResult> {
  checkOptions("importFolder", options, { prefix: true, signal: true, onProgress: true });
  const { path, disk } = await openNodeFolder(folder);
  return await importFiles(
    { disk, folder: path, bucket: await objects.bucket(bucket), store: objects.directory },
    options,
  );
}

/** Opens a local file as a body. Throws NO_SUCH_FILE. */
export async function openFile(path: string | URL): Promise<{ size: number; body: AsyncIterable<Uint8Array> }> {
  const { path: file, disk } = await openNodeFolder(path);
  return await bodyOfFile(disk, file);
}

async function onPostgres(): Promise<typeof engine> {
  return await import("../postgres/by-location.ts");
}
