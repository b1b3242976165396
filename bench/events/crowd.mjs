// Eight processes that append to one log as fast as they can, each with sixteen callers: how much
// they get done together, and whether each process gets a share.
// Once as they have just started, when most of what they do is to compile, and once warm, as
// programs are that run all day.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ownCpuUs } from "../cpu.mjs";
import { median, sum } from "../measure.mjs";
import { printRates, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { openRaw } from "./contestants.mjs";

const processes = 8;
const callers = 16;
const roundMs = sized(3000, 150);
const coldMs = sized(12_000, 200);
const warmRounds = sized(3, 1);

export async function crowdGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const raw = openRaw(`${directory}/raw`);
  const raws = [await playRaw(raw)];
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
    raws.push(await playRaw(raw));
  }
  await raw.close();
  const baseline = "raw: append, fdatasync, one process";
  const rawRate = median(raws.map(({ rate }) => rate));
  const results = new Map([[baseline, resultOf(raws.map((each) => ({ ...each, rate: rawRate })))]]);
  const contenders = [{ name: baseline }];
  for (const { name, rounds, isJudged } of rows) {
    results.set(name, resultOf(rounds));
    const share = median(rounds.map(({ leastShare }) => leastShare));
    const notes = [`least share ${share.toFixed(2)}`, isJudged && verdict("least share ≥ 0.8", share >= 0.8)];
    contenders.push({ name, notes, targets: isJudged ? [{ ratioMin: 3.5, of: baseline }] : [] });
  }
  printRates({ title: `events: ${processes} processes, ${callers} callers each`, baseline, contenders }, results);
}

function resultOf(rounds) {
  return { rates: rounds.map(({ rate }) => rate), calls: 1, cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)) };
}

async function playRaw(raw) {
  const [start, before] = [performance.now(), ownCpuUs()];
  let count = 0;
  for (; performance.now() - start < sized(1000, 50); count++) await raw.append();
  return { rate: (1000 * count) / (performance.now() - start), cpuUs: (ownCpuUs() - before) / count };
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
  const all = await Promise.all(children.map((child) => next(child)));
  const counts = all.map(({ count }) => count);
  const total = sum(counts);
  return {
    rate: (1000 * total) / ms,
    leastShare: (Math.min(...counts) * processes) / total,
    cpuUs: sum(all.map(({ cpuUs }) => cpuUs)) / total,
  };
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
