// Scenarios of buckets: a put competes with the deletion of its bucket, and buckets are created at the same time.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { ObjectsStorage } from "../../../src/objects/bucket/objects-storage.ts";
import { findVersion } from "../../../src/objects/version/find-version.ts";
import { putStaged } from "../../../src/objects/version/put-version.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";

const directory = "/objects";
const name = "photos";

/** Makes the buckets that a process uses: the real ones, or a known-wrong variant. */
export type MakeBuckets = (storage: ObjectsStorage) => Buckets;

export const realBuckets: MakeBuckets = (storage) => new Buckets(storage);

async function openBuckets(ports: Ports, make: MakeBuckets): Promise<Buckets> {
  return make(new ObjectsStorage(await Ground.open(ports, "/ground", { leaseMs: 1_000_000 }), directory));
}

export async function put(bucket: OpenBucket, text: string): Promise<void> {
  const body = { size: text.length, etag: "", inline: Buffer.from(text), sha256: "" };
  const facts = { headers: {}, metadata: {}, tags: {} };
  await putStaged(bucket, { key: "k", facts, preconditions: {} }, body, async () => undefined);
}

/** Puts a text: the real way, or a known-wrong one. */
export type PutText = (bucket: OpenBucket, text: string) => Promise<void>;

function writer(make: MakeBuckets, putText: PutText = put): Actor {
  return actor({
    prepare: async ({ ports }) => await (await openBuckets(ports, make)).get(name),
    run: async ({ name: text, note }, bucket) => {
      try {
        await putText(bucket, text);
        note("acknowledged", text);
      } catch (error) {
        // IO_ERROR: the put did nothing, because the disk failed.
        if (!isHoldfastError(error, "NO_SUCH_BUCKET", "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
        note("told", error.code);
      }
    },
  });
}

function deleter(make: MakeBuckets): Actor {
  return actor({
    prepare: async ({ ports }) => await openBuckets(ports, make),
    run: async ({ note }, buckets) => {
      try {
        await buckets.delete(name);
        note("deleted");
      } catch (error) {
        if (!isHoldfastError(error, "NO_SUCH_BUCKET", "BUCKET_NOT_EMPTY", "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
        note("told", error.code);
      }
    },
  });
}

function creator(make: MakeBuckets): Actor {
  return actor({
    prepare: async ({ ports }) => await openBuckets(ports, make),
    run: async ({ note }, buckets) => {
      try {
        await buckets.create(name, { versioning: "enabled", objectLock: false });
        note("created");
      } catch (error) {
        if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
        note("told", error.code);
      }
    },
  });
}

/** Every acknowledged put is present. A deleted bucket is gone, and can be created again. */
async function audit(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const buckets = await openBuckets(ports, realBuckets);
  const bucket = await buckets.findLiving(name);
  for (const text of valuesOf<string>(facts, "acknowledged")) {
    mustHold(bucket !== undefined, `${text} was acknowledged, and its bucket is gone`);
    const found = await bucket?.useKey("k", (key) => findVersion(key, "k", undefined));
    mustHold(found !== undefined, `${text} was acknowledged, and its object is lost`);
  }
  mustHold(
    bucket === undefined || valuesOf(facts, "deleted").length === 0 || valuesOf(facts, "created").length > 0,
    "a bucket was deleted, and is there",
  );
  if (bucket !== undefined) return await put(bucket, "afterwards");
  mustHold(valuesOf(facts, "created").length === 0 || hasDeleter(facts), "a bucket was made, and is not there");
  await buckets.create(name, { versioning: "off", objectLock: false });
  await put(await buckets.get(name), "afterwards");
}

function hasDeleter(facts: readonly Fact[]): boolean {
  return facts.some(({ what }) => what === "deleted");
}

/** Leaves the state of a deleter that died right after it had removed the keys. */
async function removeKeys(ports: Ports): Promise<void> {
  const { layout } = await (await openBuckets(ports, realBuckets)).get(name);
  await ports.disk.rmdir(parentOf(layout.key("k")));
  await ports.disk.rmdir(layout.keys);
}

function bucketScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  isMade: boolean,
): Scenario {
  return {
    setup: async (ports) => {
      for (const path of ["/ground", directory]) await ports.disk.mkdir(path);
      const buckets = await openBuckets(ports, realBuckets);
      if (isMade) await buckets.create(name, { versioning: "enabled", objectLock: false });
      // Creates the shard that a first put creates, and that stays when its keys are removed.
      if (isMade) await ports.disk.mkdir(parentOf((await buckets.get(name)).layout.key("k")));
    },
    check: (facts) => {
      mustHold(valuesOf(facts, "created").length <= 1, "two processes have made the same bucket");
    },
    audit,
    ...scenario,
  };
}

const onShare = { volume: share, profile: "share" } as const;
const oldAnswers = {
  quirks: {
    staleListings: true,
    staleAbsence: true,
    stalePresence: true,
    directoryHandles: true,
    fileHandles: true,
  },
  troubles: { stale: 2 },
} as const;

export function bucketScenarios(make: MakeBuckets = realBuckets, putText: PutText = put): Scenario[] {
  const twoMachines = {
    ada: { ...writer(make, putText), machine: "m1" },
    del: { ...deleter(make), machine: "m2" },
  };
  return [
    bucketScenario(
      {
        name: "bucket: a put and a deletion",
        about: "The put comes first and the bucket stays, or the deletion comes first and the put finds no bucket.",
        actors: { ada: writer(make, putText), del: deleter(make) },
      },
      true,
    ),
    bucketScenario(
      {
        name: "bucket: a put and a deletion on another machine, with old answers",
        about: "The same, while each machine has its own cached answers.",
        size: "large",
        ...onShare,
        ...oldAnswers,
        actors: twoMachines,
      },
      true,
    ),
    bucketScenario(
      {
        name: "bucket: a put and a deletion on another machine, with lost replies",
        about: "The same, while a reply may be lost, or may answer a repeated request.",
        size: "large",
        ...onShare,
        troubles: { lostReply: 1, retransmit: 1 },
        actors: twoMachines,
      },
      true,
    ),
    bucketScenario(
      {
        name: "bucket: a put and a maker find the keys removed",
        about: "A deleter died before it recorded the deletion. The put finds no bucket, or the new one.",
        size: "medium",
        actors: { ada: writer(make, putText), bob: creator(make) },
        meanwhile: removeKeys,
      },
      true,
    ),
    ...(["weak", "ext4-ordered"] as const).map((profile) =>
      bucketScenario(
        {
          name: `bucket: a deletion, power cuts (${profile})`,
          about: "A deleted bucket stays deleted, and can be created again.",
          profile,
          powerCuts: true,
          actors: { del: deleter(make) },
        },
        true,
      ),
    ),
    bucketScenario(
      {
        name: "bucket: a deleter that is killed, and a put",
        about: "Whatever the deleter leaves, the bucket exists or can be created again.",
        size: "medium",
        actors: { ada: writer(make, putText), del: deleter(make) },
        killsMax: 1,
        mortal: ["del"],
      },
      true,
    ),
    bucketScenario(
      {
        name: "bucket: two processes make it",
        about: "One process creates the bucket, and the other learns that it exists.",
        size: "large",
        actors: { ada: creator(make), bob: creator(make) },
      },
      false,
    ),
  ];
}
