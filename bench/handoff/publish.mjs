// Publishing a small message durably: one at a time, and in batches.
import { mkdirSync } from "node:fs";
import { batch, openHoldfast, openNaive } from "./contestants.mjs";
import { openPostgres } from "./postgres.mjs";
import { openBullMq } from "./redis.mjs";

export async function publishGroup({ directory, ground }) {
  mkdirSync(`${directory}/box`);
  const naive = openNaive(`${directory}/naive`);
  const holdfast = await openHoldfast(ground.ports, `${directory}/box`);
  const peers = [await openBullMq(`${directory}/redis`), await openPostgres(directory)];
  for (const { missing } of peers) if (missing !== undefined) console.log(`left out: ${missing}`);
  const there = peers.filter(({ missing }) => missing === undefined);
  const oneAtATime = "holdfast publish with a key";
  const bullMqBatch = there
    .filter(({ name }) => name.startsWith("BullMQ"))
    .map(({ name }) => ({ ratioMin: 1, of: `${name}, ${batch} at once` }));
  return {
    title: "handoff: publish a message of 200 bytes, durable, one process",
    baseline: naive.name,
    contenders: [
      { name: naive.name, call: naive.publish },
      ...there.flatMap(({ name, publish, publishBatch }) => [
        { name, call: publish },
        { name: `${name}, ${batch} at once`, callsPerRun: batch, call: publishBatch },
      ]),
      { name: "holdfast publish", call: holdfast.publish },
      { name: oneAtATime, call: holdfast.publishWithKey },
      {
        name: `holdfast publishMany, ${batch} with keys`,
        callsPerRun: batch,
        call: holdfast.publishBatch,
        targets: [{ ratioMin: 4, of: oneAtATime }, ...bullMqBatch],
      },
    ],
    close: async () => {
      for (const each of [holdfast, ...there]) await each.close();
    },
  };
}
