// The torture of objects: versions of one hot key, and a key that is constantly deleted and collected.
import { listIfThere } from "../../../src/durable/publish/directory.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../../src/errors.ts";
import { Buckets } from "../../../src/objects/bucket/buckets.ts";
import type { Bucket } from "../../../src/objects/model/bucket.ts";
import { ObjectsStorage } from "../../../src/objects/bucket/objects-storage.ts";
import { closeIfEmpty } from "../../../src/objects/bucket/empty-keys.ts";
import type { OpenKey } from "../../../src/objects/key/key-chains.ts";
import { keyDirectories } from "../../../src/objects/listing/walk-keys.ts";
import { DirectoryObjects } from "../../../src/objects/objects.ts";
import { findVersionName } from "../../../src/objects/model/version-id.ts";
import type { Counter } from "../../scenarios/durable/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "../task.ts";

const hot = "hot";
const brief = "brief";
/** Every second body gets a file of its own. */
const inlineMax = 64;
const collectEvery = 7;
/** The number of versions that the sabotage has acknowledged in this process before they were linked. */
let promised = 0;

export const objectsTask: TortureTask = {
  promise: "loses no version and gives none twice",
  longRuns: [{ seed: 1, seconds: 10, atLeast: { appends: 100, kills: 10, stops: 30, livesOver: 1 } }],
  sabotage: { about: "acknowledges a version before it is linked", seed: 3 },
  tellsInside: false,
  dawdling: 0.01,

  async work(tools, signal) {
    const { life, name, sabotage, report } = tools;
    const store = openTortured(tools);
    const bucket = await openBucket(store, "kept", "enabled");
    const passing = await openBucket(store, "passing", "off");
    const sweep = sweeper(tools);
    let count = (await countsIn(bucket)).counts[name] ?? 0;
    for (let round = 1; !signal.aborted; round++) {
      life.throwIfOver();
      if (sabotage) report({ kind: "won", count: count + 1, number: 1_000_000 * process.pid + ++promised });
      const number = await putOne(bucket, tools, count + 1);
      if (number === undefined) count = (await countsIn(bucket)).counts[name] ?? 0;
      else if (!sabotage) report({ kind: "won", count: ++count, number });
      else count++;
      // Bodies alternate between the slot and a file of their own, which the next put makes an orphan.
      await orUnknown(() => passing.put(brief, `${name} ${round}`.padEnd(round % 2 === 0 ? 10 : 2 * inlineMax)));
      await orUnknown(() => passing.delete(brief));
      if (round % collectEvery === 0) await orUnknown(() => removeBrief(tools));
      await sweep();
    }
  },

  async find(tools) {
    const store = openTortured(tools);
    const { counts, wrong } = await countsIn(await openBucket(store, "kept", "enabled"));
    wrong.push(...(await collectAll(store, tools)).map((path) => `${path} was left, and no version names it`));
    const { problems } = await store.verify();
    return { state: counts, epochs: 0, wrong: [...wrong, ...problems.map(({ path, what }) => `${path}: ${what}`)] };
  },
};

function openTortured({ ground, directory, sync }: TortureTools): DirectoryObjects {
  const storage = new ObjectsStorage(ground, `${directory}/objects`, { isSynced: sync });
  return new DirectoryObjects({ storage, ownsGround: false }, { inlineMax });
}

async function openBucket(store: DirectoryObjects, name: string, versioning: "enabled" | "off"): Promise<Bucket> {
  const found = await store.findBucket(name);
  if (found !== undefined) return found;
  try {
    return await store.createBucket(name, { versioning });
  } catch (error) {
    if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
    return await store.bucket(name);
  }
}

/** Returns undefined if the outcome is unknown. */
async function putOne(bucket: Bucket, { name, report }: TortureTools, count: number): Promise<number | undefined> {
  try {
    const body = `${name} ${count} ${"x".repeat(count % 2 === 0 ? 10 : 100)}`;
    const { versionId } = await bucket.put(hot, body, { metadata: { name, count: String(count) } });
    return findVersionName(versionId)?.slot;
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
    report({ kind: "unknown" });
    return undefined;
  }
}

async function orUnknown(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
  }
}

/** Runs at once, without a pause, so that it meets puts in progress. */
async function removeBrief({ ground, directory, sync }: TortureTools): Promise<void> {
  const storage = new ObjectsStorage(ground, `${directory}/objects`, { isSynced: sync });
  const bucket = await new Buckets(storage).get("passing");
  await bucket.useKey(brief, (key) => closeIfEmpty(bucket, key));
}

/**
 * Collects until no orphan is left. Returns the orphans left after three leases. A killed process of this machine is
 * proven dead at once, one of another machine after its lease.
 */
async function collectAll(store: DirectoryObjects, tools: TortureTools): Promise<string[]> {
  for (const until = performance.now() + 3 * tools.leaseMs; ; await sleep(tools.leaseMs / 5)) {
    await store.collect();
    const orphans = await orphansIn(tools);
    if (orphans.length === 0 || performance.now() > until) return orphans;
  }
}

/** Returns the bodies that no version names, and the prepared and trashed files. */
async function orphansIn({ ground, directory }: TortureTools): Promise<string[]> {
  const storage = new ObjectsStorage(ground, `${directory}/objects`);
  const { disk, layout } = storage;
  const buckets = new Buckets(storage);
  const orphans: string[] = [];
  for (const { name } of await buckets.list()) {
    const bucket = await buckets.get(name);
    const named = new Set<string>();
    for await (const each of keyDirectories(bucket))
      for (const file of await bucket.useDirectory(each, bodiesOf)) named.add(bucket.bodyPath(file));
    for (const holder of await listIfThere(disk, bucket.layout.bodies))
      for (const file of await listIfThere(disk, bucket.layout.bodiesOf(holder)))
        orphans.push(`${bucket.layout.bodiesOf(holder)}/${file}`);
    for (const path of named) {
      const at = orphans.indexOf(path);
      if (at >= 0) orphans.splice(at, 1);
    }
  }
  for (const holder of await listIfThere(disk, layout.stagings))
    for (const name of await listIfThere(disk, layout.staging(holder)))
      orphans.push(`${layout.staging(holder)}/${name}`);
  for (const name of await listIfThere(disk, layout.trash)) orphans.push(`${layout.trash}/${name}`);
  return orphans;
}

async function bodiesOf({ chain, history }: OpenKey): Promise<string[]> {
  const head = await chain.findHead();
  const { versions = [] } = (head && (await history.read(head))) ?? {};
  return versions.flatMap(({ entry }) => (entry.kind === "put" ? (entry.parts ?? []).map(({ file }) => file) : []));
}

/** Returns the last version of each process, and every missing or doubled one. */
async function countsIn(bucket: Bucket): Promise<{ readonly counts: Counter; readonly wrong: string[] }> {
  const seen = new Map<string, number[]>();
  for await (const { metadata } of bucket.versions({ key: hot })) {
    const { name = "", count } = metadata;
    seen.set(name, [...(seen.get(name) ?? []), Number(count)]);
  }
  const wrong: string[] = [];
  const counts: Record<string, number> = {};
  for (const [name, found] of seen) {
    const sorted = found.sort((one, other) => one - other);
    if (sorted.some((count, index) => count !== index + 1)) wrong.push(`${name} has put ${sorted.join(", ")}`);
    counts[name] = sorted.length;
  }
  return { counts, wrong };
}
