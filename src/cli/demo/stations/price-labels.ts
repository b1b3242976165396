// Price labels: every workstation overwrites the same few objects. Each label that was put is a
// version, and stays.
import { isHoldfastError } from "../../../index.ts";
import { openObjects, type Bucket, type ObjectStore } from "../../../objects/index.ts";
import {
  readNoted,
  type Clerk,
  type Findings,
  type SharedFolder,
  type Receipt,
  type Station,
  type StationKind,
  type WorkId,
  type WorkOptions,
} from "./station.ts";

const station = "labels";
const bucketName = "labels";
const keys = ["lamp", "chair"];
/** The filling of a label, which makes a torn one visible. */
const ruler = "-".repeat(500);

export const priceLabels: StationKind = {
  name: station,
  about: "Each overwrites the same two price labels in an object store: every version is kept, byte for byte.",
  pieces: "labels",
  every: 2,
  open: async (folder, clerk) => {
    const objects = await openLabels(folder);
    return new LabelStation(objects, await getBucket(objects), clerk);
  },
  audit: auditLabels,
};

class LabelStation implements Station {
  readonly #objects: ObjectStore;
  readonly #bucket: Bucket;
  readonly #clerk: Clerk;

  constructor(objects: ObjectStore, bucket: Bucket, clerk: Clerk) {
    this.#objects = objects;
    this.#bucket = bucket;
    this.#clerk = clerk;
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt> {
    const key = keys[Math.floor(sequence / 2) % keys.length] as string;
    const receipt = { station, ...this.#clerk, sequence, what: `a label for the ${key}` };
    if (!forgets) await this.#bucket.put(key, labelOf(receipt), { signal });
    return receipt;
  }

  async close(): Promise<void> {
    await this.#objects.close();
  }
}

async function openLabels({ directory }: SharedFolder): Promise<ObjectStore> {
  return await openObjects(`${directory}/labels`);
}

/** Any workstation may have created the bucket. */
async function getBucket(objects: ObjectStore): Promise<Bucket> {
  try {
    return await objects.createBucket(bucketName, { versioning: "enabled" });
  } catch (error) {
    if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
    return await objects.bucket(bucketName);
  }
}

function idOf({ session, sequence }: WorkId): string {
  return `${session}:${sequence}`;
}

function labelOf(piece: WorkId): string {
  const id = idOf(piece);
  return `${id}\n${ruler}\n${id}\n`;
}

/** Returns undefined for a label that no workstation put. */
function findId(text: string): string | undefined {
  const [session = "", sequence = ""] = (text.split("\n")[0] ?? "").split(":");
  const piece = { session, sequence: Number(sequence) };
  return text === labelOf(piece) ? idOf(piece) : undefined;
}

/** Reads every version of every label. */
async function auditLabels(folder: SharedFolder, receipts: readonly Receipt[]): Promise<Findings> {
  const [ids, doubled, disorder] = [new Set<string>(), [] as string[], [] as string[]];
  let found = 0;
  await readNoted(disorder, async () => {
    await using objects = await openLabels(folder);
    const bucket = await getBucket(objects);
    for (const key of keys) {
      for (const versionId of (await readNoted(disorder, () => versionsOf(bucket, key))) ?? []) {
        const text = await readNoted(disorder, () => readText(bucket, key, versionId));
        if (text === undefined) continue;
        const id = findId(text);
        if (id === undefined) disorder.push(`version ${versionId} of ${key} is not what a workstation has put`);
        else if (ids.has(id)) doubled.push(`label ${id} is version ${versionId} of ${key}, and another one`);
        else ids.add(id);
        found++;
      }
    }
  });
  const lost = receipts.filter((receipt) => !ids.has(idOf(receipt)));
  return {
    acknowledged: receipts.length,
    found,
    lost: lost.map((receipt) => `${receipt.what}, piece ${receipt.sequence} of ${receipt.workstation}`),
    doubled,
    disorder,
    shown: `${keys.length} keys have ${found} versions, each whole and put once`,
  };
}

async function versionsOf(bucket: Bucket, key: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { versionId } of bucket.versions({ key })) found.push(versionId);
  return found;
}

async function readText(bucket: Bucket, key: string, versionId: string): Promise<string> {
  await using object = await bucket.get(key, { versionId });
  return await object.text();
}
