// Taking messages from a backlog and noting durably that each is done: rounds in which the
// contenders take turns, each with a backlog that was filled before.
import { mkdirSync } from "node:fs";
import { ownCpuUs } from "../cpu.mjs";
import { printRates } from "../report.mjs";
import { sized } from "../settings.mjs";
import { batch, openHoldfast, openNaive } from "./contestants.mjs";
import { openPostgres } from "./postgres.mjs";
import { openBullMq } from "./redis.mjs";

const rounds = sized(7, 1);
const perRound = sized(4, 1) * batch;
const concurrency = 16;
const bullMq = "BullMQ, Redis appendfsync=always";

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
  const results = new Map();
  const note = async ({ name, cpuUs = ownCpuUs }, work) => {
    const [startMs, before] = [performance.now(), cpuUs()];
    await work();
    const result = results.get(name) ?? { rates: [], calls: 0, cpuUs: 0 };
    result.rates.push((1000 * perRound) / (performance.now() - startMs));
    result.cpuUs += cpuUs() - before;
    result.calls += perRound;
    results.set(name, result);
  };
  for (let round = 0; round < rounds; round++)
    for (const each of there) {
      await fill(each);
      await note(each, async () => {
        for (let count = 0; count < perRound; count++)
          if (!(await each.consume())) throw new Error(`${each.name}: empty`);
      });
      if (each.drain === undefined) continue;
      await fill(each);
      await note({ ...each, name: manyAtATime(each.name) }, () => each.drain(perRound, concurrency));
    }
  results.get("holdfast").operations = await countOperations(holdfast, counts);
  const targets = {
    holdfast: [{ ratioMin: 1, of: bullMq }],
    [manyAtATime("holdfast")]: [{ ratioMin: 0.5, of: manyAtATime(bullMq) }],
  };
  const contenders = [...results.keys()].map((name) => ({ name, targets: targets[name] }));
  const title = "handoff: take a message and note that it is done, durable, one process";
  printRates({ title, baseline: naive.name, contenders }, results);
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

function manyAtATime(name) {
  return `${name}, ${concurrency} at a time`;
}
