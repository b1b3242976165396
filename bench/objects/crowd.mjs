// Eight processes that put to one key: with Holdfast, and the same work under a lock file.
import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { printTable, ratio, verdict } from "../report.mjs";
import { median } from "../measure.mjs";
import { sized } from "../settings.mjs";
import { openHoldfast } from "./contestants.mjs";

const processes = 8;
const putsEach = sized(40, 4);
const rounds = sized(5, 1);

export async function crowdGroup({ directory, ground }) {
  return { run: () => run(directory, ground.ports) };
}

async function run(directory, ports) {
  const rates = { locked: [], holdfast: [] };
  for (let round = 0; round < rounds; round++)
    for (const way of Object.keys(rates)) {
      const own = `${directory}/${way}-${round}`;
      mkdirSync(own);
      if (way === "holdfast") await (await openHoldfast(ports, own)).close();
      rates[way].push(await putTogether(way, own));
    }
  const kept = await countVersions(ports, `${directory}/holdfast-0`);
  const faster = median(rates.holdfast.map((rate, round) => rate / rates.locked[round]));
  printTable(`objects: ${processes} processes put 1 KiB to one key, ${putsEach} times each`, [
    {
      name: "under a lock file, a file for each version",
      figures: [ratio(1), `${Math.round(median(rates.locked))}/s`],
    },
    {
      name: `holdfast (${kept} of ${processes * putsEach} versions are there)`,
      figures: [ratio(faster), `${Math.round(median(rates.holdfast))}/s`],
      notes: [verdict("≥ 1.5 × the lock file", faster >= 1.5), verdict("all versions", kept === processes * putsEach)],
    },
  ]);
}

async function putTogether(way, directory) {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const children = Array.from({ length: processes }, () => fork(worker, [way, directory, String(putsEach)]));
  await Promise.all(children.map((child) => once(child, "message")));
  const startMs = performance.now();
  for (const child of children) child.send("go");
  await Promise.all(children.map((child) => once(child, "message")));
  const rate = (1000 * processes * putsEach) / (performance.now() - startMs);
  await Promise.all(children.map((child) => (child.disconnect(), once(child, "exit"))));
  return rate;
}

async function countVersions(ports, directory) {
  const holdfast = await openHoldfast(ports, directory);
  let count = 0;
  for await (const _version of holdfast.bucket.versions({ key: "object" })) count++;
  await holdfast.close();
  return count;
}
