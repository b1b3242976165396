// The initial state of object scenarios, an object store with one bucket, and short functions to use it.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { ObjectsStorage } from "../../../src/objects/bucket/objects-storage.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { readVersions, versionsOf } from "../../../src/objects/listing/list-page.ts";
import type { ObjectVersion, Preconditions, Versioning } from "../../../src/objects/model/object.ts";
import { putBody, type AnnounceKey, type PutRequest } from "../../../src/objects/version/put-version.ts";
import { openObject } from "../../../src/objects/version/read-version.ts";
import type { Ports } from "../../../src/ports/ports.ts";

export const bucketName = "photos";
export const keyName = "k";
/** So small that a body of a few letters gets a file of its own, unless it is put with `isInline`. */
const inlineMax = 1;
const inlineAlways = 1000;

export const announceNothing: AnnounceKey = async () => undefined;

export async function storageIn(ports: Ports): Promise<ObjectsStorage> {
  return new ObjectsStorage(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), "/objects");
}

export async function openBucketOf(ports: Ports): Promise<OpenBucket> {
  return await new Buckets(await storageIn(ports)).get(bucketName);
}

export function requestOf(preconditions: Preconditions = {}): PutRequest {
  return { key: keyName, facts: { headers: {}, metadata: {}, tags: {} }, preconditions };
}

export interface PutWay {
  /** Default: the body has a file of its own. */
  readonly isInline?: boolean | undefined;
  readonly preconditions?: Preconditions | undefined;
}

export async function putText(
  bucket: OpenBucket,
  text: string,
  { isInline = false, preconditions }: PutWay = {},
): Promise<ObjectVersion> {
  const options = { inlineMax: isInline ? inlineAlways : inlineMax };
  return await putBody(async () => bucket, requestOf(preconditions), Buffer.from(text), options, announceNothing);
}

export async function readText(bucket: OpenBucket, versionId?: string): Promise<string> {
  const object = await openObject(bucket, keyName, { versionId });
  try {
    return await object.text();
  } finally {
    await object[Symbol.asyncDispose]();
  }
}

/** Returns the texts of all versions, the newest first; a marker is "(marker)". Throws if a slot is damaged. */
export async function textsOf(bucket: OpenBucket): Promise<string[]> {
  const texts: string[] = [];
  for (const { entry } of (await readVersions(bucket, keyName)).unread) throw entry.error;
  for (const { versionId, deleteMarker } of await versionsOf(bucket, keyName))
    texts.push(deleteMarker ? "(marker)" : await readText(bucket, versionId));
  return texts;
}

export interface ObjectWorld {
  readonly versioning: Versioning;
  /** Default false. */
  readonly objectLock?: boolean;
  /** Texts that are put before the scenario begins. */
  readonly before?: readonly string[];
  readonly isInline?: boolean;
}

export async function makeWorld(
  ports: Ports,
  { versioning, objectLock = false, before = [], isInline }: ObjectWorld,
): Promise<void> {
  for (const path of ["/ground", "/objects"]) await ports.disk.mkdir(path);
  await new Buckets(await storageIn(ports)).create(bucketName, { versioning, objectLock });
  const bucket = await openBucketOf(ports);
  for (const text of before) await putText(bucket, text, { isInline });
  // Creates the shard that a first put creates, and that stays when its keys are removed.
  if (before.length === 0) await ports.disk.mkdir(parentOf(bucket.layout.key(keyName)));
}
