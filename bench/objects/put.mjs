// Putting and getting an object of 1 KiB, durable, one process.
import { mkdirSync } from "node:fs";
import { printRates, printTable, verdict } from "../report.mjs";
import { syncsIn } from "../counts.mjs";
import { measure } from "../measure.mjs";
import { inFlight, openHoldfast, openNaive } from "./contestants.mjs";

export async function putGroup({ directory, ground, counts }) {
  return { run: () => run(directory, ground.ports, counts) };
}

async function run(directory, ports, counts) {
  mkdirSync(`${directory}/objects`);
  const naive = openNaive(`${directory}/naive`);
  const holdfast = await openHoldfast(ports, `${directory}/objects`);
  const group = {
    title: "objects: put 1 KiB, durable, every version kept, one process",
    baseline: naive.name,
    contenders: [
      { name: naive.name, call: naive.put },
      { name: "holdfast put, existing key", call: holdfast.put, targets: [{ ratioMin: 1, of: naive.name }] },
      {
        name: `holdfast put, ${inFlight} existing keys at once`,
        callsPerRun: inFlight,
        call: holdfast.putMany,
        countedCall: holdfast.put,
        targets: [{ ratioMin: 2, of: naive.name }],
      },
      { name: "holdfast put, new key", call: holdfast.putNew, targets: [{ ratioMin: 0.5, of: naive.name }] },
      {
        name: `holdfast put, ${inFlight} new keys at once`,
        callsPerRun: inFlight,
        call: holdfast.putManyNew,
        countedCall: holdfast.putNew,
      },
      { name: "by hand: readFile", call: naive.get },
      { name: "holdfast get", call: holdfast.get },
    ],
  };
  printRates(group, await measure(group.contenders, counts));
  const syncsOf = async (call) => {
    await call();
    counts.reset();
    await call();
    return syncsIn(counts.describe());
  };
  const existing = await syncsOf(holdfast.put);
  const fresh = await syncsOf(holdfast.putNew);
  printTable("objects: syncs of a put", [
    { name: "existing key", figures: [String(existing)], notes: [verdict("≤ 2", existing <= 2)] },
    // Its content, its directory, its shard; and, shared by all callers of a moment, the announcement
    // with its directory, and the directory of the shards.
    { name: "new key", figures: [String(fresh)], notes: [verdict("≤ 3, and 3 that callers share", fresh <= 6)] },
  ]);
  await holdfast.close();
}
