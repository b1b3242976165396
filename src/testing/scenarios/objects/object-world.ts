// What scenarios of objects begin with: an object store with one bucket, and short ways to use it.
import { Ground } from "../../../durable/liveness/ground.ts";
import { parentOf } from "../../../durable/publish/directory.ts";
import { Buckets } from "../../../objects/bucket/buckets.ts";
import { ObjectsPlace } from "../../../objects/bucket/objects-place.ts";
import type { OpenBucket } from "../../../objects/bucket/open-bucket.ts";
import { versionsOf } from "../../../objects/listing/list-page.ts";
import type { ObjectVersion, Preconditions, Versioning } from "../../../objects/model/object-store.ts";
import { putBody, type Announce, type PutRequest } from "../../../objects/version/put-version.ts";
import { openObject } from "../../../objects/version/read-version.ts";
import type { Ports } from "../../../ports/ports.ts";

export const bucketName = "photos";
export const keyName = "k";
/** So small that a body of a few letters gets a file of its own; unless it is put `isInline`. */
const inlineMax = 1;
const inlineAlways = 1000;

export const announceNothing: Announce = async () => undefined;

export async function openPlaceOf(ports: Ports): Promise<ObjectsPlace> {
  return new ObjectsPlace(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), "/objects");
}

export async function openBucketOf(ports: Ports): Promise<OpenBucket> {
  return await new Buckets(await openPlaceOf(ports)).get(bucketName);
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

/** The texts of all versions that are there, the newest first; a marker is "(marker)". */
export async function textsOf(bucket: OpenBucket): Promise<string[]> {
  const texts: string[] = [];
  for (const { versionId, deleteMarker } of await versionsOf(bucket, keyName))
    texts.push(deleteMarker ? "(marker)" : await readText(bucket, versionId));
  return texts;
}

export interface ObjectWorld {
  readonly versioning: Versioning;
  /** Default false. */
  readonly objectLock?: boolean;
  /** Texts that were put before the scenario begins. */
  readonly before?: readonly string[];
  readonly isInline?: boolean;
}

export async function makeWorld(
  ports: Ports,
  { versioning, objectLock = false, before = [], isInline }: ObjectWorld,
): Promise<void> {
  for (const path of ["/ground", "/objects"]) await ports.disk.mkdir(path);
  await new Buckets(await openPlaceOf(ports)).create(bucketName, { versioning, objectLock });
  const bucket = await openBucketOf(ports);
  for (const text of before) await putText(bucket, text, { isInline });
  // As after a first put: a shard that stays when its keys go.
  if (before.length === 0) await ports.disk.mkdir(parentOf(bucket.layout.key(keyName)));
}
