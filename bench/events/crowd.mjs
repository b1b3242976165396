// Eight processes that append to one log as fast as they can, each with sixteen callers: how much
// they get done together, and whether each process gets a share.
// Once as they have just started, when most of what they do is to compile, and once warm, as
// programs are that run all day.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { median } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { openRaw } from "./contestants.mjs";

const processes = 8;
const callers = 16;
const roundMs = 3000;
const coldMs = 12_000;
const warmRounds = 3;

export async function crowdGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const raw = openRaw(`${directory}/raw`);
  const rawRates = [await rawRate(raw)];
  const rows = [];
  for (const mode of ["local", "share"]) {
    const place = `${directory}/${mode}`;
    mkdirSync(place);
    const children = await startCrowd(place, mode);
    const cold = await playRound(children, roundMs);
    await playRound(children, coldMs - roundMs);
    const warm = [];
    for (let round = 0; round < warmRounds; round++) warm.push(await playRound(children, roundMs));
    rows.push({ name: `holdfast, mode ${mode}, just started`, rounds: [cold] });
    rows.push({ name: `holdfast, mode ${mode}`, rounds: warm, isJudged: mode === "local" });
    await endCrowd(children);
    rawRates.push(await rawRate(raw));
  }
  await raw.close();
  const base = median(rawRates);
  printTable(
    `events: ${processes} processes, ${callers} callers each (ratio to: raw append, fdatasync of one process)`,
    [
      { name: "raw: append, fdatasync, one process", figures: [ratio(1), `${Math.round(base)}/s`, ""] },
      ...rows.map(({ name, rounds, isJudged }) => {
        const rate = median(rounds.map((each) => each.rate));
        const share = median(rounds.map((each) => each.leastShare));
        const figures = [ratio(rate / base), `${Math.round(rate)}/s`, `least share ${share.toFixed(2)}`];
        const notes = isJudged
          ? [verdict("≥ 2.5 × raw", rate / base >= 2.5), verdict("least share ≥ 0.8", share >= 0.8)]
          : [];
        return { name, figures, notes };
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

async function startCrowd(directory, mode) {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const children = Array.from({ length: processes }, () => fork(worker, [directory, mode, String(callers)]));
  await Promise.all(children.map((child) => next(child)));
  return children;
}

async function playRound(children, ms) {
  const fromMs = Date.now() + 100;
  for (const child of children) child.send({ fromMs, untilMs: fromMs + ms });
  const counts = (await Promise.all(children.map((child) => next(child)))).map(({ count }) => count);
  const sum = counts.reduce((total, count) => total + count, 0);
  return { rate: (1000 * sum) / ms, leastShare: (Math.min(...counts) * processes) / sum };
}

async function endCrowd(children) {
  await Promise.all(
    children.map((child) => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.disconnect();
      return ended;
    }),
  );
}

async function next(child) {
  const listening = new AbortController();
  const { signal } = listening;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([message]) => message),
      once(child, "exit", { signal }).then(([code]) => Promise.reject(new Error(`a worker ended with ${code}`))),
    ]);
  } finally {
    listening.abort();
  }
}
