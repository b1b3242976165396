// Eight processes that append to one log as fast as they can, each with sixteen callers: how much they get done together, and whether everybody gets a share.
import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { median } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { openRaw } from "./contestants.mjs";

const processes = 8;
const callers = 16;
const rounds = 3;
const roundMs = 3000;

export async function crowdGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const raw = openRaw(`${directory}/raw`);
  const modes = ["local", "share"];
  const rawRates = [];
  const results = new Map(modes.map((mode) => [mode, { rates: [], shares: [] }]));
  for (let round = 0; round < rounds; round++) {
    rawRates.push(await rawRate(raw));
    for (const mode of modes) {
      const place = `${directory}/${mode}-${round}`;
      mkdirSync(place);
      const counts = await playRound(place, mode);
      const sum = counts.reduce((total, count) => total + count, 0);
      results.get(mode).rates.push((1000 * sum) / roundMs);
      results.get(mode).shares.push((Math.min(...counts) * processes) / sum);
    }
  }
  await raw.close();
  const base = median(rawRates);
  printTable(
    `events: ${processes} processes, ${callers} callers each (ratio to: raw append, fdatasync of one process)`,
    [
      { name: "raw: append, fdatasync, one process", figures: [ratio(1), `${Math.round(base)}/s`, ""] },
      ...modes.map((mode) => {
        const rate = median(results.get(mode).rates);
        const share = median(results.get(mode).shares);
        const figures = [ratio(rate / base), `${Math.round(rate)}/s`, `least share ${share.toFixed(2)}`];
        const notes =
          mode === "local"
            ? [verdict("≥ 2.5 × raw", rate / base >= 2.5), verdict("least share ≥ 0.8", share >= 0.8)]
            : [];
        return { name: `holdfast, mode ${mode}`, figures, notes };
      }),
    ],
  );
}

async function rawRate(raw) {
  const start = performance.now();
  let count = 0;
  for (; performance.now() - start < 1000; count++) await raw.append();
  return count;
}

async function playRound(directory, mode) {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const children = Array.from({ length: processes }, () => fork(worker, [directory, mode, String(callers)]));
  await Promise.all(children.map((child) => next(child)));
  const fromMs = Date.now() + 100;
  for (const child of children) child.send({ fromMs, untilMs: fromMs + roundMs });
  const counts = await Promise.all(children.map((child) => next(child)));
  for (const child of children) child.disconnect();
  return counts.map(({ count }) => count);
}

function next(child) {
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`a worker ended with ${code}`)));
  });
}
