// Looking a key up in a ledger that has many: one that is there, and one that is not.
import { createHash, randomBytes } from "node:crypto";
import { linkSync, mkdirSync } from "node:fs";
import { findCommitted } from "../../dist/handoff/ledger/ledger.js";
import { openBox } from "../../dist/handoff/box/open-box.js";
import { median } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { openHoldfast } from "./contestants.mjs";

const keys = Number(process.env.HOLDFAST_BENCH_LEDGER ?? sized(100_000, 200));
/** Of a file; a file system allows 65,000. */
const namesMax = 60_000;
const lookups = sized(2000, 50);

export async function ledgerGroup({ directory, ground: { ports } }) {
  return { run: () => run(`${directory}/box`, ports) };
}

async function run(directory, ports) {
  mkdirSync(directory);
  const holdfast = await openHoldfast(ports, directory);
  const done = [];
  for (let count = 0; count < sized(8, 1); count++) await holdfast.publishBatch();
  for (let delivery = await holdfast.box.take(); delivery !== undefined; delivery = await holdfast.box.take()) {
    done.push(delivery.key);
    await delivery.ack({ isBooked: true });
  }
  await holdfast.close();
  const { box } = await openBox(ports, directory, {});
  addNames(box.layout, done);
  const there = await time(box, (index) => done[index % done.length]);
  const absent = await time(box, () => randomBytes(8).toString("hex"));
  printTable(`handoff: look a key up among ${keys.toLocaleString("en")}`, [
    { name: "one that is done", figures: [`${there.toFixed(3)} ms`], notes: [verdict("< 1 ms", there < 1)] },
    { name: "one that is not there", figures: [`${absent.toFixed(3)} ms`], notes: [verdict("< 1 ms", absent < 1)] },
  ]);
  await box.ground.close();
}

/** By hand, as a compaction leaves them: many names of one file. What is measured is the lookup. */
function addNames(layout, done) {
  const made = new Set();
  const files = done.map((key) => layout.ledger(key, 0));
  const perFile = Math.min(namesMax, Math.ceil(keys / files.length));
  for (let count = 0; count < keys; count++) {
    const name = createHash("sha256").update(`filler ${count}`).digest("hex");
    const shard = `${layout.ledgers}/${name.slice(0, 3)}`;
    if (!made.has(shard)) mkdirSync(shard, { recursive: true });
    made.add(shard);
    linkSync(files[Math.floor(count / perFile)], `${shard}/${name}`);
  }
}

async function time(box, keyOf) {
  const took = [];
  for (let index = 0; index < lookups; index++) {
    const path = box.layout.ledger(keyOf(index), 0);
    const startMs = performance.now();
    await findCommitted(box, path);
    took.push(performance.now() - startMs);
  }
  return median(took);
}
