// Eight processes that want the same lock all the time: how often it is acquired, and whether each
// process gets a share.
import { mkdirSync, readFileSync } from "node:fs";
import { median, sum } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { monotonicMs } from "./monotonic.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const processes = 8;
const rounds = sized(3, 1);
const roundMs = sized(1500, 200);
const names = ["store lock", "path lock", "semaphore", "proper-lockfile, retry 100 ms", "proper-lockfile, retry 10 ms"];
/** The more eager one, with which it mostly does best. */
const baseline = "proper-lockfile, retry 10 ms";
/**
 * With one caller each it is the hand-over between processes that is measured; decision 16 says why
 * that one is missed.
 */
const target = { ratioMin: 10, shareMin: 0.5 };

/**
 * One caller a process: each hand-over is one between processes. Sixteen: what a server does that
 * answers requests.
 */
const crowds = [1, 16];

export async function crowdGroup({ directory }) {
  return {
    run: async () => {
      for (const callers of crowds) {
        mkdirSync(`${directory}/${callers}`);
        await run(`${directory}/${callers}`, callers);
      }
    },
  };
}

async function run(directory, callers) {
  const entrants = names.map((name, index) => ({
    name,
    directory: `${directory}/${index}`,
    rates: [],
    cpuMs: 0,
    counts: Array.from({ length: processes }, () => 0),
  }));
  const workers = startWorkers(worker, processes);
  try {
    for (const { name, directory } of entrants) {
      mkdirSync(directory);
      for (const worker of workers) await worker.ask("open", { name, directory });
    }
    for (let round = 0; round < rounds; round++)
      for (const entrant of entrants) await playRound(workers, entrant, callers);
  } finally {
    await endWorkers(workers);
  }
  const who = `${processes} processes on one, ${callers === 1 ? "one caller" : `${callers} callers`} each`;
  const title = `locks: ${who}, counting in a file (ratio to: ${baseline})`;
  const base = median(entrants.find(({ name }) => name === baseline).rates);
  printTable(
    title,
    entrants.map((entrant) => rowOf(entrant, base)),
  );
}

async function playRound(workers, entrant, callers) {
  const { name, directory } = entrant;
  // Time for the order to reach all of them.
  const fromMs = monotonicMs() + 50;
  const untilMs = fromMs + roundMs;
  const each = await Promise.all(
    workers.map((worker) => worker.ask("contend", { name, directory, callers, fromMs, untilMs })),
  );
  for (const [index, { count, cpuMs }] of each.entries()) {
    entrant.counts[index] += count;
    entrant.cpuMs += cpuMs;
  }
  entrant.rates.push((1000 * sum(each.map(({ count }) => count))) / roundMs);
}

function rowOf({ name, directory, rates, cpuMs, counts }, base) {
  const perSecond = median(rates);
  const share = (Math.min(...counts) * processes) / sum(counts);
  // A lock that lets two in at once would look fast.
  const lost = sum(counts) - Number(readFileSync(`${directory}/counter`).readBigUInt64LE());
  const figures = [
    ratio(perSecond / base),
    `${Math.round(perSecond)}/s`,
    `${(cpuMs / sum(counts)).toFixed(2)} ms CPU each`,
    `least share ${share.toFixed(2)}`,
    `${lost} lost updates`,
  ];
  const notes = [];
  if (name === "path lock") {
    notes.push(verdict(`≥ ${target.ratioMin} × proper-lockfile`, perSecond / base >= target.ratioMin));
    notes.push(verdict(`least share ≥ ${target.shareMin}`, share >= target.shareMin));
  }
  return { name, figures, notes };
}
