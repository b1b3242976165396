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
  return {
    title: "handoff: publish a message of 200 bytes, durable, one process",
    baseline: naive.name,
    contenders: [
      { name: naive.name, call: naive.publish },
      ...there.flatMap(({ name, publish, publishBatch, cpuUs }) => [
        { name, call: publish, cpuUs },
        { name: `${name}, ${batch} at once`, callsPerRun: batch, call: publishBatch, cpuUs },
      ]),
      { name: "holdfast publish", call: holdfast.publish, targets: [{ ratioMin: 2, of: naive.name }] },
      {
        name: "holdfast publish with a key",
        call: holdfast.publishWithKey,
        targets: [{ ratioMin: 0.7, of: naive.name }],
      },
      {
        name: `holdfast publishMany, ${batch} with keys`,
        callsPerRun: batch,
        call: holdfast.publishBatch,
        targets: [{ ratioMin: 8, of: naive.name }],
      },
    ],
    close: async () => {
      for (const each of [holdfast, ...there]) await each.close();
    },
  };
}
