// Eight processes that work on one box: how many of their claims come too late, and how long the
// first claim takes from a long backlog.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { encodeRecord } from "../../dist/format/record.js";
import { makeId } from "../../dist/format/id.js";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { batch, openHoldfast } from "./contestants.mjs";

const processes = 8;
const messages = sized(50, 2) * batch;
const backlog = Number(process.env.HOLDFAST_BENCH_TICKETS ?? sized(100_000, 1_000));

export async function crowdGroup({ directory, ground }) {
  return { run: () => run(directory, ground) };
}

async function run(directory, { ports }) {
  const crowd = await workTogether(`${directory}/crowd`, ports);
  const firstMs = await firstClaimMs(`${directory}/long`, ports);
  const wasted = (crowd.tried - crowd.claimed) / crowd.claimed;
  printTable(`handoff: ${processes} processes on one box, and a long backlog`, [
    {
      name: `${processes} processes take ${messages} messages`,
      figures: [`${Math.round(crowd.rate)}/s`, `${wasted.toFixed(2)} renames wasted for each claim`],
      notes: [verdict("≤ 0.2 wasted", wasted <= 0.2)],
    },
    {
      name: `first claim of a process from ${backlog} messages`,
      figures: [`${firstMs.toFixed(1)} ms`, ""],
      notes: [verdict("< 50 ms", firstMs < 50)],
    },
  ]);
}

async function workTogether(directory, ports) {
  mkdirSync(directory);
  const holdfast = await openHoldfast(ports, directory);
  for (let count = 0; count < messages / batch; count++) await holdfast.publishBatch();
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const children = Array.from({ length: processes }, () => fork(worker, [directory]));
  await Promise.all(children.map((child) => once(child, "message")));
  const startMs = performance.now();
  for (const child of children) child.send("go");
  const ends = await Promise.all(children.map((child) => once(child, "message")));
  const rate = (1000 * messages) / (performance.now() - startMs);
  for (const child of children) child.disconnect();
  await holdfast.close();
  const sum = (name) => ends.reduce((total, [figures]) => total + figures[name], 0);
  return { rate, tried: sum("tried"), claimed: sum("claimed") };
}

/** The backlog is written by hand: what is measured is the claim. */
async function firstClaimMs(directory, ports) {
  mkdirSync(directory);
  const holdfast = await openHoldfast(ports, directory);
  await holdfast.publish();
  const incoming = `${directory}/incoming/5`;
  const minute = `${incoming}/${readdirSync(incoming)[0]}`;
  const [first] = readdirSync(minute);
  const { kind, body } = JSON.parse(readFileSync(`${minute}/${first}`, "utf8"));
  const random = Buffer.alloc(16);
  for (let count = 1; count < backlog; count++) {
    random.writeUInt32BE(count, 12);
    const id = makeId(Date.now(), random);
    const bytes = encodeRecord({ kind, decode: (value) => value }, { ...body, id, key: id }, { isChecked: true });
    writeFileSync(`${minute}/${id}-0.json`, bytes);
  }
  const other = await openHoldfast(ports, directory);
  const startMs = performance.now();
  const delivery = await other.box.take();
  const tookMs = performance.now() - startMs;
  await delivery.ack();
  await other.close();
  await holdfast.close();
  return tookMs;
}
