// Buckets in memory for the acceptance tests: what they state does not depend on the disk, and the
// suites of test/objects run on every kind of it.
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import type { Versioning } from "../../../src/objects/model/object.ts";
import type { DirectoryObjects } from "../../../src/objects/objects.ts";
import { sites, type Site } from "../../sites/sites.ts";
import { objectsOn } from "../object-sites.ts";

export function memorySite(): Promise<Site> {
  const [, make] = sites.find(([name]) => name === "the memory disk")!;
  return make();
}

export async function memoryStore(): Promise<DirectoryObjects> {
  return await (await objectsOn(memorySite)).open();
}

/** Suspended ones were enabled before: a bucket cannot begin so. */
export async function bucketOf(versioning: Versioning): Promise<Bucket> {
  const store = await memoryStore();
  const bucket = await store.createBucket("photos", { versioning: versioning === "off" ? "off" : "enabled" });
  if (versioning === "suspended") await bucket.setVersioning("suspended");
  return bucket;
}

/** A bucket whose versions can be retained and held. */
export async function lockedBucket(): Promise<Bucket> {
  return await (await memoryStore()).createBucket("vault", { objectLock: true });
}

/** The ids of all versions and markers of a key, the newest first. */
export async function idsOf(bucket: Bucket, key: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { versionId } of bucket.versions({ key })) ids.push(versionId);
  return ids;
}
