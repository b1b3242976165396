// Several processes that work on one folder at the same time: what they get done together, in rounds that take turns with
// those of others.
import { mkdirSync } from "node:fs";
import { sum } from "../measure.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";
import { printRates } from "../report.mjs";
import { roundMsOf, sized } from "../settings.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const rounds = sized(5, 1);
const roundMs = roundMsOf(1500, 100, rounds);
/** What is compared are programs that have been running for a while. */
const warmUpMs = sized(3000, 50);

/** `crowds`: by name, the part and how many processes use it. The first one is what the others are compared with. */
export async function compareCrowds(directory, title, crowds, { name: judged, ratioMin }) {
  const opened = [];
  try {
    for (const [name, { part, processes }] of Object.entries(crowds))
      opened.push({ name, workers: await open(`${directory}/${opened.length}`, part, processes) });
    for (const { workers } of opened) await play(workers, warmUpMs);
    const results = new Map(opened.map(({ name }) => [name, { rates: [], calls: 0, cpuUs: 0 }]));
    for (let round = 0; round < rounds; round++)
      for (const { name, workers } of opened) {
        const { count, cpuUs, tookMs } = await play(workers, roundMs);
        const result = results.get(name);
        result.rates.push((1000 * count) / tookMs);
        result.calls += count;
        result.cpuUs += cpuUs;
      }
    const [baseline] = results.keys();
    const targetsOf = (name) => (name === judged ? [{ ratioMin, of: baseline }] : []);
    const contenders = [...results.keys()].map((name) => ({ name, targets: targetsOf(name) }));
    printRates({ title, baseline, contenders }, results);
  } finally {
    await endWorkers(opened.flatMap(({ workers }) => workers));
  }
}

async function open(directory, part, processes) {
  mkdirSync(directory);
  const workers = startWorkers(worker, processes);
  // One after the other: the first one makes what all use.
  for (const each of workers) await each.ask("open", { part, directory });
  return workers;
}

async function play(workers, forMs) {
  const fromMs = Date.now() + 50;
  const all = await Promise.all(workers.map((each) => each.ask("work", { fromMs, untilMs: fromMs + forMs })));
  return {
    count: sum(all.map(({ count }) => count)),
    cpuUs: sum(all.map(({ cpuUs }) => cpuUs)),
    tookMs: Date.now() - fromMs,
  };
}
