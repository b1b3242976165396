// Object stores on every kind of disk; each opening acts as another process.
import { onTestFinished } from "vitest";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import type { Versioning } from "../../src/objects/model/object.ts";
import type { ObjectStore, ObjectStoreOptions } from "../../src/objects/model/object-store.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Site } from "../sites/sites.ts";

/** An object store, whatever it is stored in. */
export interface StoreSite {
  /** Another process on the same object store; closed when the test ends. */
  open(options?: ObjectStoreOptions): Promise<ObjectStore>;
}
export type StoreSiteMaker = () => Promise<StoreSite>;

export interface ObjectSite extends Site, StoreSite {
  open(options?: ObjectStoreOptions): Promise<DirectoryObjects>;
}

/** So small that a body of a few bytes gets a file of its own. */
export const smallInline: ObjectStoreOptions = { inlineMax: 16 };

export async function objectsOn(make: () => Promise<Site>): Promise<ObjectSite> {
  const site = await make();
  const open = async (options: ObjectStoreOptions = {}): Promise<DirectoryObjects> => {
    const opened = await openStorage(await site.openPorts(), `${site.directory}/objects`);
    const store = new DirectoryObjects(opened, options);
    onTestFinished(() => store.close());
    return store;
  };
  return { ...site, open };
}

/** A bucket that was just made, in a store of its own. */
export async function newBucket(
  make: () => Promise<Site>,
  versioning: Versioning = "enabled",
  options: ObjectStoreOptions = {},
): Promise<Bucket> {
  return await bucketOn(() => objectsOn(make), versioning, options);
}

export async function bucketOn(
  make: StoreSiteMaker,
  versioning: Versioning = "enabled",
  options: ObjectStoreOptions = {},
): Promise<Bucket> {
  const store = await (await make()).open(options);
  return await store.createBucket("photos", { versioning });
}

export async function textOf(bucket: Bucket, key: string, versionId?: string): Promise<string> {
  await using object = await bucket.get(key, { versionId });
  return await object.text();
}

export async function versionsOf(bucket: Bucket, key: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { versionId, deleteMarker } of bucket.versions({ key }))
    found.push(deleteMarker ? "(marker)" : await textOf(bucket, key, versionId));
  return found;
}

/** The code of the error that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return "nothing failed";
}

/** The names of all files below a directory, without those of the configuration, of the reserve and of the ground. */
export async function filesIn(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory)) {
    if (["config", ".holdfast", "objects.json", "reserve"].includes(name)) continue;
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "file") found.push(path);
    else found.push(...(await filesIn(disk, path)));
  }
  return found;
}
