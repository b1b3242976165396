// The subpath "holdfast/objects": a versioned object store in a shared folder, where no version is
// lost.
import { checkOptions } from "../format/known-options.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { directoryOf } from "../ports/node/location.ts";
import { openNodeFolder, openNodePorts } from "../ports/node/ports.ts";
import type { VerifyOptions, VerifyReport } from "../common.ts";
import { listParts, locatePart, type PartLocation } from "../part/location.ts";
import { Findings } from "../part/findings.ts";
import { bodyOfFile } from "../part/read-chunks.ts";
import { objectsPart } from "./bucket/objects-record.ts";
import { importFiles, type Imported, type ImportOptions } from "./import-folder.ts";
import { openPlace } from "./bucket/open-objects.ts";
import { checkStoreOptions } from "./model/arguments.ts";
import type { ObjectStoreOptions } from "./model/object-store.ts";
import { DirectoryObjects } from "./objects.ts";

export type * from "./model/object-store.ts";
export type { DirectoryObjects as ObjectStore } from "./objects.ts";
export type { PartLocation as ObjectsLocation };
export type { Imported, ImportOptions };
export { expiryMs } from "./model/lifecycle.ts";
export { startChecksum, type RunningChecksum } from "../format/running-checksum.ts";

/** Opens the object store in `directory`, and makes it if there is none. NOT_A_STORE, WRONG_STORE as the options ask. */
export async function openObjects(
  directory: string | URL,
  options: ObjectStoreOptions = {},
): Promise<DirectoryObjects> {
  checkStoreOptions("openObjects", options);
  const given = directoryOf(directory);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  const { create, id, durability } = options;
  const opened = await openPlace(ports, path, { create, id, isSynced: durability !== "none" });
  return new DirectoryObjects(opened, options);
}

/** The object store that `location` means: a directory of its own, or that of a store. Makes nothing. */
export async function locateObjects(location: string | URL): Promise<PartLocation> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, objectsPart, path, "");
}

/** The directory of the object store at `location`, or of the one in the store there; none if there is none. */
export async function listObjectStores(location: string | URL): Promise<string[]> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, objectsPart, path);
}

/** As `verify` of an object store; also of one whose record cannot be read. NOT_A_STORE. */
export async function verifyObjects(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  const findings = new Findings();
  const spot = { path: directoryOf(directory) };
  const report = await findings.attempt(spot, "The record of this object store", async () => {
    await using objects = await openObjects(directory, { create: false });
    return await objects.verify(options);
  });
  return report ?? { ok: false, checked: 0, problems: findings.problems };
}

/**
 * Puts each file below `folder` into a bucket, under its path as the key. Files that are there already
 * with the same bytes are left out, so it can be run again. NO_SUCH_BUCKET, INVALID_PATH, BAD_DIGEST.
 */
export async function importFolder(
  objects: DirectoryObjects,
  bucket: string,
  folder: string | URL,
  options: ImportOptions = {},
): Promise<Imported> {
  checkOptions("importFolder", options, { prefix: true, signal: true, onProgress: true });
  const { path, disk } = await openNodeFolder(folder);
  return await importFiles(
    { disk, folder: path, bucket: await objects.bucket(bucket), store: objects.directory },
    options,
  );
}

/** A file of this machine as a body: how many bytes it has, and the bytes. NO_SUCH_FILE. */
export async function openFile(path: string | URL): Promise<{ size: number; body: AsyncIterable<Uint8Array> }> {
  const { path: file, disk } = await openNodeFolder(path);
  return await bodyOfFile(disk, file);
}
