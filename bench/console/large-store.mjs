// A store with 10 M events, 100,000 tickets and 1 M keys. What is measured comes after, so it is filled by the fastest way:
// events without a sync, keys as a put would have left them. On tmpfs (HOLDFAST_BENCH_DIR=/dev/shm) it takes minutes.
import { mkdirSync, writeFileSync } from "node:fs";
import { randomName } from "../../dist/format/id.js";
import { openStore } from "../../dist/index.js";
import { Buckets } from "../../dist/objects/bucket/buckets.js";
import { ObjectsStorage } from "../../dist/objects/bucket/objects-storage.js";
import { openStorage } from "../../dist/objects/bucket/open-objects.js";
import { writeAnnouncement } from "../../dist/objects/listing/announcements.js";
import { KeyIndex } from "../../dist/objects/listing/key-index.js";
import { encodeEntry } from "../../dist/objects/model/entry.js";
import { openNodePorts } from "../../dist/ports/node/ports.js";
import { fill as fillLog } from "../events/contestants.mjs";
import { sized } from "../settings.mjs";

/** `HOLDFAST_BENCH_EVENTS=100000` and so on for a smaller one. */
export const sizes = {
  events: Number(process.env.HOLDFAST_BENCH_EVENTS ?? sized(10_000_000, 2_000)),
  tickets: Number(process.env.HOLDFAST_BENCH_TICKETS ?? sized(100_000, 128)),
  keys: Number(process.env.HOLDFAST_BENCH_KEYS ?? sized(1_000_000, 300)),
  files: Number(process.env.HOLDFAST_BENCH_FILES ?? sized(1_000, 20)),
};
const body = Buffer.alloc(200, "x");
/** Of a hundred tickets one failed and one is done. The others wait. */
const shares = { failed: 0.01, done: 0.01 };
const batch = 64;
const keysPerFile = 256;

/** Calls `onPart` with each part once it is filled. */
export async function fillStore(directory, onPart) {
  mkdirSync(directory);
  const store = await openStore(directory);
  const log = await store.events("main", { durability: "none" });
  await fillLog(log, sizes.events);
  onPart("events");
  const box = await store.handoff("invoices");
  await fillBox(box);
  onPart("tickets");
  await (await store.objects()).createBucket("photos");
  await fillBucket(directory);
  onPart("keys");
  const tree = await store.files();
  for (let n = 0; n < sizes.files; n += batch)
    await Promise.all(
      Array.from({ length: Math.min(batch, sizes.files - n) }, (_, index) => tree.write(`notes/${n + index}.md`, body)),
    );
  onPart("files");
  await store.close();
}

async function fillBox(box) {
  for (let n = 0; n < sizes.tickets; n += batch) {
    const items = Array.from({ length: Math.min(batch, sizes.tickets - n) }, (_, index) => ({
      files: { "invoice.xml": body },
      key: `invoice-${n + index}`,
      group: `customer-${(n + index) % 500}`,
    }));
    for await (const { duplicate } of box.publishMany(items)) if (duplicate) throw new Error("a key was used twice");
  }
  const settle = async (count, end) => {
    for (let n = 0; n < count; n++) {
      const delivery = await box.take();
      if (delivery === undefined) throw new Error("there are too few tickets");
      await end(delivery);
    }
  };
  await settle(sizes.tickets * shares.failed, (delivery) => delivery.fail("no such customer"));
  await settle(sizes.tickets * shares.done, (delivery) => delivery.ack({ isBooked: true }));
}

async function fillBucket(store) {
  const directory = `${store}/objects`;
  const opened = await openStorage(await openNodePorts(directory), directory);
  const bucket = await new Buckets(new ObjectsStorage(opened.storage.ground, directory, { isSynced: false })).get(
    "photos",
  );
  const index = await KeyIndex.open(bucket);
  const random = Buffer.alloc(16);
  let lives = [];
  let announced = 0;
  for (let n = 0; n < sizes.keys; n++) {
    random.writeUInt32BE(n, 0);
    const life = { key: keyOf(n), incarnation: randomName(random) };
    writeKey(bucket, life);
    lives.push(life);
    if (lives.length < keysPerFile && n < sizes.keys - 1) continue;
    await writeAnnouncement(bucket, { keys: lives, ended: [] });
    lives = [];
    if (++announced % keysPerFile === 0) await index.merge(1);
  }
  await index.merge(1);
  if (opened.ownsGround) await opened.storage.ground.close();
}

/** As a put would have left it. */
function writeKey(bucket, { key, incarnation }) {
  const facts = { id: incarnation, key, config: bucket.state.number, atMs: Date.now(), isNull: false };
  const entry = { kind: "put", ...facts, size: body.length, etag: "", headers: {}, metadata: {}, tags: {}, sha256: "" };
  const directory = bucket.layout.key(key);
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}/${incarnation}-0000000001`, Buffer.concat([encodeEntry(entry), body]));
}

/** A thousand folders of a thousand keys. */
export function keyOf(n) {
  return `folder-${String(n % 1000).padStart(3, "0")}/photo-${String(n).padStart(8, "0")}.jpg`;
}
