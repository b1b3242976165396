// Scenarios of versions: readers, conditional puts, deletions, holds and changing settings. Each is judged by the state
// that its decision was based on.
import { isHoldfastError, type ErrorCode } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import { changeSettings } from "../../../src/objects/bucket/change-settings.ts";
import type { OpenBucket } from "../../../src/objects/bucket/open-bucket.ts";
import { findSlot } from "../../../src/objects/key/entry-file.ts";
import { versionsOf } from "../../../src/objects/listing/list-page.ts";
import { changeVersion } from "../../../src/objects/version/change-version.ts";
import { deleteObject } from "../../../src/objects/version/delete-version.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";
import {
  announceNothing,
  bucketName,
  keyName,
  makeWorld,
  openBucketOf,
  storageIn,
  putText,
  readText,
  textsOf,
  type ObjectWorld,
  type PutWay,
} from "./object-world.ts";

/** The operations under test: the real ways, or known-wrong ones. */
export interface VersionWays {
  readonly put?: ((bucket: OpenBucket, text: string, way: PutWay) => Promise<unknown>) | undefined;
  readonly removeVersion?: ((bucket: OpenBucket, versionId: string) => Promise<unknown>) | undefined;
  /** Changes the bucket that a process has opened. */
  readonly spoil?: ((bucket: OpenBucket) => void) | undefined;
}

const removeReally = async (bucket: OpenBucket, versionId: string): Promise<unknown> =>
  await deleteObject(bucket, keyName, { versionId }, announceNothing);

async function orTold({ note }: ActorContext, codes: readonly ErrorCode[], act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isHoldfastError(error) || !codes.includes(error.code)) throw error;
    note("told", error.code);
  }
}

/** Puts its name. */
function writer({ put = putText, spoil }: VersionWays, way: (bucket: OpenBucket) => Promise<PutWay>): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      spoil?.(bucket);
      return { bucket, how: await way(bucket) };
    },
    run: (context, { bucket, how }) =>
      orTold(context, ["PRECONDITION_FAILED", "NO_SUCH_KEY"], async () => {
        await put(bucket, context.name, how);
        context.note("acknowledged", context.name);
      }),
  });
}

const etagOf = async (bucket: OpenBucket): Promise<string> => (await versionsOf(bucket, keyName))[0]?.etag ?? "";
const newestOf = async (bucket: OpenBucket): Promise<string> => (await versionsOf(bucket, keyName))[0]?.versionId ?? "";

/** Removes the version that was current when the scenario began. */
function remover({ removeVersion = removeReally }: VersionWays): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      return { bucket, versionId: await newestOf(bucket) };
    },
    run: (context, { bucket, versionId }) =>
      orTold(context, ["RETAINED"], async () => {
        await removeVersion(bucket, versionId);
        context.note("removed", versionId);
      }),
  });
}

/** Deletes the object by its key, under the settings that it has read. */
function deleter(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async ({ note }, bucket) => {
      const { deleteMarker } = await deleteObject(bucket, keyName, {}, announceNothing);
      note("deleted", deleteMarker);
    },
  });
}

function holder(): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const bucket = await openBucketOf(ports);
      return { bucket, versionId: await newestOf(bucket) };
    },
    run: (context, { bucket, versionId }) =>
      orTold(context, ["NO_SUCH_VERSION", "NO_SUCH_KEY"], async () => {
        await changeVersion(bucket, { key: keyName, versionId, change: { legalHold: true } });
        context.note("held", versionId);
      }),
  });
}

/** Reads the object, and notes the answer. */
function reader(): Actor {
  return actor({
    prepare: async ({ ports }) => await openBucketOf(ports),
    run: async (context, bucket) => {
      context.note("began");
      try {
        context.note("read", await readText(bucket));
      } catch (error) {
        if (!isHoldfastError(error, "NO_SUCH_VERSION", "NO_SUCH_KEY")) throw error;
        context.note("read", error.code);
      }
    },
  });
}

/** Returns the kinds of all entries of the key, the oldest first. */
async function entriesOf(bucket: OpenBucket): Promise<string[]> {
  return await bucket.useKey(keyName, async ({ chain }) => {
    const head = await chain.findHead();
    const kinds: string[] = [];
    for (let number = 1; number <= (head?.number ?? 0); number++) {
      const slot = await findSlot(bucket.storage.disk, chain.names.slotPath(head?.incarnation ?? "", number));
      kinds.push(slot?.entry.kind ?? "nothing");
    }
    return kinds;
  });
}

function versionScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  world: ObjectWorld,
): Scenario {
  return {
    setup: (ports) => makeWorld(ports, world),
    audit: async (ports: Ports, facts: readonly Fact[]) => {
      const bucket = await openBucketOf(ports);
      const texts = await textsOf(bucket);
      for (const text of valuesOf<string>(facts, "acknowledged"))
        mustHold(
          texts.includes(text) || world.versioning !== "enabled",
          `${text} was acknowledged and is lost: there are ${texts.join(", ")}`,
        );
      // A writer that remembers an older end of the key would take the number, so its version would count as removed.
      const isFree = (await entriesOf(bucket)).includes("nothing");
      mustHold(!isFree, "a slot is free again, and entries behind it are there");
      await putText(bucket, "last");
      mustHold((await readText(bucket)) === "last", "the key cannot be gone on with");
    },
    ...scenario,
  };
}

/** The answers that a reader may get while the newest version is removed or replaced. */
function mayRead(
  before: string,
  after: readonly string[],
  isDone: (fact: Fact) => boolean,
): NonNullable<Scenario["check"]> {
  return (facts) => {
    const began = facts.findIndex(({ what }) => what === "began");
    const done = facts.findIndex(isDone);
    const isLater = done >= 0 && done < began;
    for (const text of valuesOf<string>(facts, "read"))
      mustHold((!isLater && text === before) || after.includes(text), `read ${text}${isLater ? " afterwards" : ""}`);
  };
}

const old = ["one", "two"] as const;
const onShare = { volume: share, profile: "share" } as const;
const plain = async (): Promise<PutWay> => ({});
const ifUnchanged = async (bucket: OpenBucket): Promise<PutWay> => ({
  isInline: true,
  preconditions: { ifMatch: await etagOf(bucket) },
});

async function setVersioning(ports: Ports, versioning: "enabled" | "suspended"): Promise<void> {
  await changeSettings(await new Buckets(await storageIn(ports)).get(bucketName), { versioning });
}

export function versionScenarios(ways: VersionWays = {}): Scenario[] {
  const isRemoved = ({ what }: Fact): boolean => what === "removed";
  const isReplaced = ({ what }: Fact): boolean => what === "acknowledged";
  return [
    ...[true, false].map((isInline) =>
      versionScenario(
        {
          name: `version: a reader and a removal, ${isInline ? "in the slot" : "a file of its own"}`,
          about: "The reader gets the whole version, or the one before it.",
          size: "medium",
          actors: { eve: reader(), del: remover(ways) },
          check: mayRead("two", ["one"], isRemoved),
        },
        { versioning: "enabled", before: old, isInline },
      ),
    ),
    versionScenario(
      {
        name: "version: a reader and a put where no versions are kept",
        about: "The reader gets the whole object that existed when it began, or the one after it.",
        size: "medium",
        actors: { eve: reader(), ada: writer(ways, plain) },
        check: mayRead("one", ["ada"], isReplaced),
      },
      { versioning: "off", before: ["one"] },
    ),
    versionScenario(
      {
        name: "version: a reader and a removal on another machine",
        about: "The reader gets the whole version or the one before it, or learns that it is gone.",
        size: "large",
        ...onShare,
        quirks: { staleListings: true, staleAbsence: true, directoryHandles: true, fileHandles: true },
        troubles: { stale: 2 },
        actors: { eve: { ...reader(), machine: "m1" }, del: { ...remover(ways), machine: "m2" } },
        check: mayRead("two", ["one", "NO_SUCH_VERSION"], isRemoved),
      },
      { versioning: "enabled", before: old },
    ),
    versionScenario(
      {
        name: "version: two puts replace the same object",
        about: "Both puts ask for the same ETag, and one wins.",
        size: "medium",
        actors: { ada: writer(ways, ifUnchanged), bob: writer(ways, ifUnchanged) },
        check: (facts) =>
          mustHold(valuesOf(facts, "acknowledged").length <= 1, "two puts have replaced the same object"),
      },
      { versioning: "enabled", before: ["one"], isInline: true },
    ),
    versionScenario(
      {
        name: "version: a legal hold and a removal",
        about: "The version is held and stays, or it is removed and cannot be held.",
        size: "medium",
        actors: { ada: holder(), del: remover(ways) },
        check: (facts) =>
          mustHold(
            valuesOf(facts, "held").length + valuesOf(facts, "removed").length <= 1,
            "a version was held and removed",
          ),
      },
      { versioning: "enabled", objectLock: true, before: ["one"], isInline: true },
    ),
    versionScenario(
      {
        name: "version: a put that slept while versions were enabled",
        about: "The put keeps the previous object as the null version once a version follows it.",
        size: "large",
        actors: {
          ada: writer(ways, plain),
          bob: { ...writer({}, plain), isFresh: true },
        },
        meanwhile: (ports) => setVersioning(ports, "enabled"),
        audit: async (ports: Ports) => {
          const found = await versionsOf(await openBucketOf(ports), keyName);
          const at = found.findIndex(({ versionId }) => versionId === "null");
          mustHold(at >= 0, "the null version is gone that enabling had promised to keep");
          mustHold(at === found.length - 1, "a null version was put behind a version of a later setting");
        },
      },
      { versioning: "off", before: ["one"] },
    ),
    versionScenario(
      {
        name: "version: a deletion that slept while versions were enabled",
        about: "Once a version of the new setting exists, the deletion removes nothing: it adds a marker.",
        size: "large",
        actors: { ada: deleter(), bob: { ...writer({}, plain), isFresh: true } },
        meanwhile: (ports) => setVersioning(ports, "enabled"),
        audit: async (ports: Ports) => {
          const bucket = await openBucketOf(ports);
          const entries = await entriesOf(bucket);
          const [put, removal] = ["put", "remove"].map((kind) => entries.lastIndexOf(kind));
          mustHold((removal ?? -1) < (put ?? -1), "the null version was removed that enabling had promised to keep");
        },
      },
      { versioning: "off", before: ["one"] },
    ),
    versionScenario(
      {
        name: "version: a removal on a share, and its machine dies",
        about:
          "On a share where a rename first removes the name that it replaces, no slot of the key is missing afterwards.",
        ...onShare,
        quirks: { renameVacates: true },
        killsMax: 1,
        actors: { del: remover(ways) },
      },
      { versioning: "enabled", before: old, isInline: true },
    ),
    ...(["weak", "ext4-ordered"] as const).map((profile) =>
      versionScenario(
        {
          name: `version: a removal, power cuts (${profile})`,
          about: "A removed version stays removed, and the rest of the key can be read.",
          profile,
          powerCuts: true,
          actors: { del: remover(ways) },
          audit: async (ports: Ports, facts: readonly Fact[]) => {
            const bucket = await openBucketOf(ports);
            const texts = await textsOf(bucket);
            const isGone = valuesOf(facts, "removed").length > 0;
            mustHold(texts.includes("one"), `an older version is lost: there are ${texts.join(", ")}`);
            mustHold(!isGone || !texts.includes("two"), "a version came back that was removed");
            await putText(bucket, "last");
          },
        },
        { versioning: "enabled", before: old, isInline: true },
      ),
    ),
  ];
}
