// The world of the index scenarios: a bucket with one key that every listing must show, and the
// processes that merge its index.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { ObjectsStorage } from "../../../src/objects/bucket/objects-storage.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { Announcements } from "../../../src/objects/listing/announcements.ts";
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import { walkKeyLives } from "../../../src/objects/listing/walk-keys.ts";
import { putStaged, type AnnounceKey } from "../../../src/objects/version/put-version.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

const directory = "/objects";
const name = "photos";

/** The index class under test: the real one, or a known-wrong variant. */
export interface IndexWays {
  readonly IndexClass?: typeof KeyIndex | undefined;
}

async function openBuckets(ports: Ports): Promise<Buckets> {
  return new Buckets(new ObjectsStorage(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), directory));
}

export async function openBucket(ports: Ports): Promise<OpenBucket> {
  return await (await openBuckets(ports)).get(name);
}

export async function keysOf(index: KeyIndex): Promise<string[]> {
  await using snapshot = await index.snapshot();
  const keys: string[] = [];
  for await (const key of snapshot.from("")) keys.push(key);
  return keys;
}

/** Puts the key. If the key must be new, the announcement is written after the entry, otherwise beside it. */
export async function putWith(
  bucket: OpenBucket,
  key: string,
  announce: AnnounceKey,
  { mustBeNew = false }: { readonly mustBeNew?: boolean } = {},
): Promise<void> {
  const body = { size: 1, etag: "", inline: Buffer.from("x"), sha256: "" };
  const facts = { headers: {}, metadata: {}, tags: {} };
  await putStaged(bucket, { key, facts, preconditions: mustBeNew ? { ifNoneMatch: "*" } : {} }, body, announce);
}

export function merger({ IndexClass = KeyIndex }: IndexWays, times: number): Actor {
  return actor({
    prepare: async ({ ports }) => await IndexClass.open(await openBucket(ports)),
    run: async (_context, index) => {
      for (let count = 0; count < times; count++) await index.merge(0);
    },
  });
}

/** `announce` writes the keys that the index knows from the beginning, among them the key "old". */
export function indexScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  announce: (bucket: OpenBucket) => Promise<unknown> = announceOld,
): Scenario {
  return {
    setup: async (ports) => {
      for (const path of ["/ground", directory]) await ports.disk.mkdir(path);
      await (await openBuckets(ports)).create(name, { versioning: "off", objectLock: false });
      const bucket = await openBucket(ports);
      await announce(bucket);
      await KeyIndex.open(bucket);
    },
    check: (facts) => {
      for (const keys of valuesOf<readonly string[]>(facts, "listed"))
        mustHold(keys.includes("old"), `a listing without the key "old": ${keys.join(", ")}`);
    },
    audit: async (ports: Ports, facts: readonly Fact[]) => {
      const bucket = await openBucket(ports);
      const keys = await keysOf(await KeyIndex.open(bucket));
      for await (const { key } of walkKeyLives(bucket))
        mustHold(keys.includes(key), `${key} is there, and no listing shows it`);
      for (const key of ["old", ...valuesOf<string>(facts, "announced")])
        mustHold(keys.includes(key), `${key} was announced, and is not in the index: ${keys.join(", ")}`);
    },
    ...scenario,
  };
}

async function announceOld(bucket: OpenBucket): Promise<void> {
  await new Announcements().announce(bucket, "old", "i");
}
