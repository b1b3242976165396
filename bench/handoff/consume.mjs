// Taking messages from a backlog and noting durably that each is done: rounds in which the
// contenders take turns, each with a backlog that was filled before.
import { mkdirSync } from "node:fs";
import { median } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { batch, openHoldfast, openNaive } from "./contestants.mjs";
import { openPostgres } from "./postgres.mjs";
import { openBullMq } from "./redis.mjs";

const rounds = 7;
const perRound = 4 * batch;
const concurrency = 16;

export async function consumeGroup({ directory, ground, counts }) {
  return { run: () => run(directory, ground, counts) };
}

async function run(directory, ground, counts) {
  mkdirSync(`${directory}/box`);
  const naive = openNaive(`${directory}/naive`);
  const holdfast = await openHoldfast(ground.ports, `${directory}/box`);
  const all = [naive, holdfast, await openBullMq(`${directory}/redis`), await openPostgres(directory)];
  for (const { missing } of all) if (missing !== undefined) console.log(`left out: ${missing}`);
  const there = all.filter(({ missing }) => missing === undefined);
  const rates = new Map();
  const note = (name, startMs) => {
    const before = rates.get(name) ?? [];
    rates.set(name, [...before, (1000 * perRound) / (performance.now() - startMs)]);
  };
  for (let round = 0; round < rounds; round++)
    for (const each of there) {
      await fill(each);
      let startMs = performance.now();
      for (let count = 0; count < perRound; count++)
        if (!(await each.consume())) throw new Error(`${each.name}: empty`);
      note(each.name, startMs);
      if (each.drain === undefined) continue;
      await fill(each);
      startMs = performance.now();
      await each.drain(perRound, concurrency);
      note(`${each.name}, ${concurrency} at a time`, startMs);
    }
  const operations = await countOperations(holdfast, counts);
  const at = (name) => median(rates.get(name));
  printTable(
    `handoff: take a message and note that it is done, durable, one process (ratio to: ${naive.name})`,
    [...rates.keys()].map((name) => ({
      name,
      figures: [ratio(at(name) / at(naive.name)), `${Math.round(at(name))}/s`],
      notes: [...(name === "holdfast" ? [operations] : []), ...verdictsOf(name, at, rates)],
    })),
  );
  for (const each of there) await each.close();
}

async function fill({ publish, publishBatch }) {
  if (publishBatch === undefined) for (let count = 0; count < perRound; count++) await publish();
  else for (let count = 0; count < perRound / batch; count++) await publishBatch();
}

/** Of one message each: claim with its checks, and commit. */
async function countOperations({ box, publish }, counts) {
  for (let times = 0; times < 2; times++) await publish();
  await (await box.take()).ack();
  counts.reset();
  const delivery = await box.take();
  const claim = counts.describe();
  counts.reset();
  await delivery.ack({ isBooked: true });
  return `claim: ${claim}; ack: ${counts.describe()}`;
}

function verdictsOf(name, at, rates) {
  if (!name.startsWith("holdfast")) return [];
  const peer = name.replace("holdfast", "BullMQ, Redis appendfsync=always");
  if (!rates.has(peer)) return [];
  const actual = at(name) / at(peer);
  return [verdict(`≥ 0.8 × BullMQ, is ${actual.toFixed(2)} ×`, actual >= 0.8)];
}
