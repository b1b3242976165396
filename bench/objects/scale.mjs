// Listings of a bucket with many keys. The keys are made by hand: what is measured is the listing.
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { randomName } from "../../dist/format/id.js";
import { KeyIndex } from "../../dist/objects/listing/key-index.js";
import { writeAnnouncement } from "../../dist/objects/listing/announcements.js";
import { encodeEntry } from "../../dist/objects/model/entry.js";
import { Buckets } from "../../dist/objects/bucket/buckets.js";
import { median, quantile } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { body, bucketName, openHoldfast } from "./contestants.mjs";

const keys = Number(process.env.HOLDFAST_BENCH_KEYS ?? sized(50_000, 300));
const pages = sized(30, 2);
const keysPerFile = 256;

export async function scaleGroup({ directory, ground }) {
  return { run: () => run(`${directory}/objects`, ground.ports) };
}

async function run(directory, ports) {
  mkdirSync(directory);
  const holdfast = await openHoldfast(ports, directory, { isSynced: false });
  const bucket = await new Buckets(holdfast.storage).get(bucketName);
  const mergedMs = await fill(bucket);
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const page = await timePages(pages, () => holdfast.bucket.list({ after: nameOf(randomIndex()) }));
  const folders = await timePages(5, () => holdfast.bucket.list({ delimiter: "/" }));
  const growth = (process.memoryUsage().rss - before) / 2 ** 20;
  const indexBytes = sizeOf(bucket.layout.runs);
  printTable(`objects: a bucket with ${keys} keys`, [
    {
      name: "a page of 1,000, anywhere",
      figures: page.figures,
      notes: [verdict("< 100 ms", page.medianMs < 100)],
    },
    {
      name: "a page of common prefixes",
      figures: folders.figures,
    },
    { name: "memory that listing has taken", figures: [`${growth.toFixed(0)} MB`, "", ""] },
    {
      name: "the index, and making it by merges",
      figures: [`${(indexBytes / 2 ** 20).toFixed(1)} MB`, `${(mergedMs / 1000).toFixed(1)} s`],
    },
  ]);
  await holdfast.close();
}

/** Every key as a put would have left it; the index by announcements and merges, as puts do. */
async function fill(bucket) {
  const index = await KeyIndex.open(bucket);
  const random = Buffer.alloc(16);
  let lives = [];
  let files = 0;
  let mergedMs = 0;
  for (let count = 0; count < keys; count++) {
    random.writeUInt32BE(count, 0);
    const life = { key: nameOf(count), incarnation: randomName(random) };
    writeKey(bucket, life);
    lives.push(life);
    if (lives.length < keysPerFile && count < keys - 1) continue;
    await writeAnnouncement(bucket, { keys: lives, ended: [] });
    lives = [];
    if (++files % keysPerFile > 0) continue;
    const startMs = performance.now();
    await index.merge(1);
    mergedMs += performance.now() - startMs;
  }
  const startMs = performance.now();
  await index.merge(1);
  return mergedMs + performance.now() - startMs;
}

function writeKey(bucket, { key, incarnation }) {
  const facts = { id: incarnation, key, config: bucket.state.number, atMs: Date.now(), isNull: false };
  const entry = { kind: "put", ...facts, size: body.length, etag: "", headers: {}, metadata: {}, tags: {}, sha256: "" };
  const directory = bucket.layout.key(key);
  mkdirSync(directory, { recursive: true });
  writeFileSync(`${directory}/${incarnation}-0000000001`, Buffer.concat([encodeEntry(entry), body]));
}

/** A thousand folders. */
function nameOf(index) {
  return `folder-${String(index % 1000).padStart(3, "0")}/photo-${String(index).padStart(8, "0")}.jpg`;
}

function randomIndex() {
  return Math.floor((Math.random() * keys) / 2);
}

async function timePages(count, list) {
  const times = [];
  const cpu = [];
  await list();
  for (let page = 0; page < count; page++) {
    const startMs = performance.now();
    const before = process.cpuUsage();
    await list();
    const { user, system } = process.cpuUsage(before);
    times.push(performance.now() - startMs);
    cpu.push((user + system) / 1000);
  }
  const figures = [median(times), quantile(times, 0.9), median(cpu)].map((ms) => `${ms.toFixed(0)} ms`);
  return { medianMs: median(times), figures: [figures[0], `p90 ${figures[1]}`, `${figures[2]} CPU`] };
}

function sizeOf(directory) {
  return readdirSync(directory).reduce((sum, name) => sum + statSync(`${directory}/${name}`).size, 0);
}
