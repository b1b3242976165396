// A key with many versions, an upload of many parts, and a body that is large.
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Buckets } from "../../dist/objects/bucket/buckets.js";
import { KeyChain } from "../../dist/objects/key/key-chain.js";
import { UploadFiles } from "../../dist/objects/multipart/upload-files.js";
import { median, timeCalls } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { body, bucketName, openHoldfast } from "./contestants.mjs";

const [few, many] = [10, sized(10_000, 100)];
const gibibyte = 2 ** 30;
const putBytes = sized(gibibyte, 2 ** 24);
const uploadBytes = 5 * gibibyte;

export async function largeGroup({ directory, ground }) {
  return { run: () => run(`${directory}/objects`, ground.ports) };
}

async function run(directory, ports) {
  mkdirSync(directory);
  const holdfast = await openHoldfast(ports, directory);
  const rows = [
    ...(await hotKey(holdfast, await openHoldfast(ports, directory, { isSynced: false }))),
    await completeUpload(holdfast, 80, 5),
    await completeUpload(holdfast, sized(10_000, 100), 1),
    await largePut(holdfast),
  ];
  printTable("objects: many versions, many parts, many bytes", rows);
  await holdfast.close();
}

/** Both keys are made without syncs: what is measured is the reading. */
async function hotKey(holdfast, maker) {
  for (const [key, versions] of [
    ["few", few],
    ["many", many],
  ])
    for (let count = 0; count < versions; count++) await maker.bucket.put(key, body);
  await maker.close();
  const get = async (key) => {
    const object = await holdfast.bucket.get(key);
    await object.bytes();
    await object[Symbol.asyncDispose]();
  };
  const bucket = await new Buckets(holdfast.storage).get(bucketName);
  const first = async (key) => await new KeyChain(holdfast.storage, bucket.layout.key(key)).findHead();
  const times = await timeCalls(
    { few: () => get("few"), many: () => get("many"), firstFew: () => first("few"), firstMany: () => first("many") },
    { callsPerRound: 20 },
  );
  const slower = times.get("many").ms / times.get("few").ms;
  const firstSlower = times.get("firstMany").ms / times.get("firstFew").ms;
  return [
    {
      name: `get of a key with ${many} versions, to one with ${few}`,
      figures: [ratio(slower), `${times.get("many").ms.toFixed(2)} ms`],
      notes: [verdict("≤ 2 ×", slower <= 2)],
    },
    {
      name: "the same, finding the newest of a key that is new to the process",
      figures: [ratio(firstSlower), `${times.get("firstMany").ms.toFixed(2)} ms`],
    },
  ];
}

/** The parts are sparse files with records made by hand: no byte of them is read or written. */
async function completeUpload({ bucket: user, storage }, count, rounds) {
  const bucket = await new Buckets(storage).get(bucketName);
  const times = [];
  for (let round = 0; round < rounds; round++) {
    const upload = await user.createUpload(`film ${count} ${round}`);
    const files = new UploadFiles(bucket, upload.id);
    const size = Math.floor(uploadBytes / count);
    const parts = [];
    const etag = "0".repeat(32);
    const sha256 = "0".repeat(64);
    for (let partNumber = 1; partNumber <= count; partNumber++) {
      const file = files.newBodyFile();
      writeFileSync(bucket.bodyPath(file), "");
      truncateSync(bucket.bodyPath(file), size);
      parts.push({ partNumber, etag, size, sha256, file, atMs: Date.now() });
    }
    const unsynced = new UploadFiles(
      { ...bucketOf(bucket), storage: { ...storageOf(storage), isSynced: false } },
      upload.id,
    );
    for (let at = 0; at < parts.length; at += 64)
      await Promise.all(parts.slice(at, at + 64).map((part) => unsynced.setPart(part)));
    const startMs = performance.now();
    await upload.complete(parts.map(({ partNumber }) => ({ partNumber, etag })));
    times.push(performance.now() - startMs);
  }
  const tookMs = median(times);
  return {
    name: `complete of 5 GiB in ${count} parts`,
    figures: ["", `${tookMs.toFixed(0)} ms`],
    notes: count > 1000 ? [] : [verdict("< 100 ms", tookMs < 100)],
  };
}

function bucketOf({ layout, bodyPath }) {
  return { layout, bodyPath: (file) => bodyPath.call({ layout }, file) };
}

function storageOf({ disk, staging }) {
  return { disk, staging };
}

async function largePut({ bucket }) {
  const chunk = Buffer.alloc(2 ** 20, "x");
  async function* source() {
    for (let count = 0; count < putBytes / chunk.length; count++) yield chunk;
  }
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startMs = performance.now();
  await bucket.put("large", source(), { size: putBytes });
  const tookMs = performance.now() - startMs;
  delay.disable();
  const p99Ms = delay.percentile(99) / 1e6;
  return {
    name: `put of ${putBytes / 2 ** 20} MiB: p99 of the event loop's delay`,
    figures: [`${((1000 * putBytes) / gibibyte / tookMs).toFixed(2)} GiB/s`, `${p99Ms.toFixed(1)} ms`],
    notes: [verdict("< 20 ms", p99Ms < 20)],
  };
}
