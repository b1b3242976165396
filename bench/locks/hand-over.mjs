// From the release in one process to the lock in another that waits for it.
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { contestants, flockNote, hasFlock } from "./contestants.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const rounds = sized(24, 1);
const p50MsMax = 1;
const leftOut = ["wx, write, unlink; poll 100 ms", "mkdir, rmdir; poll 100 ms"];
const targeted = ["store lock", "path lock"];

export async function handOverGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const entrants = Object.keys(contestants)
    .filter((name) => !leftOut.includes(name) && (hasFlock || name !== "flock(1)"))
    .map((name, index) => ({ name, directory: `${directory}/${index}`, latenciesMs: [] }));
  const [holder, waiter] = startWorkers(worker, 2);
  try {
    for (const { name, directory } of entrants) {
      mkdirSync(directory);
      await holder.ask("open", { name, directory });
      await waiter.ask("open", { name, directory });
    }
    for (let round = 0; round < rounds; round++)
      for (const { latenciesMs, ...lock } of entrants)
        latenciesMs.push(await handOver(holder, waiter, lock, holdMs(round)));
  } finally {
    await endWorkers([holder, waiter]);
  }
  printTable(`locks: hand-over between two processes, ${rounds} times (p50, p90)${flockNote}`, entrants.map(rowOf));
}

/**
 * Spread over a whole polling period: a lock that polls would look good or bad by the moment at
 * which it is asked.
 */
function holdMs(round) {
  return 50 + (100 * ((round * 7) % rounds)) / rounds;
}

async function handOver(holder, waiter, lock, holdMs) {
  await holder.ask("acquire", lock);
  const acquired = waiter.ask("acquire", lock);
  await sleep(holdMs);
  const releasedAtMs = await holder.ask("release", lock);
  const acquiredAtMs = await acquired;
  await waiter.ask("release", lock);
  return acquiredAtMs - releasedAtMs;
}

function rowOf({ name, latenciesMs }) {
  const p50Ms = quantile(latenciesMs, 0.5);
  const figures = [p50Ms, quantile(latenciesMs, 0.9)].map((ms) => `${ms.toFixed(2)} ms`);
  const notes = targeted.includes(name) ? [verdict(`p50 < ${p50MsMax} ms`, p50Ms < p50MsMax)] : [];
  return { name, figures, notes };
}
