// One lock that eight processes want all the time: how often it passes from one to the next.
import { endWorkers, startWorkers } from "../processes.mjs";
import { median, sum } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { startServer } from "./server.mjs";

const processes = 8;
const rounds = sized(7, 1);
const roundMs = sized(2_000, 200);
const passesMin = 150;

export async function hotLockGroup({ directory }) {
  const server = await startServer(directory);
  return { run: () => run(server.urlOf("postgres")), close: () => server.stop() };
}

async function run(url) {
  const workers = startWorkers(new URL("lock-worker.mjs", import.meta.url), processes);
  const rates = [];
  try {
    await workers[0].ask("open", { url });
    for (const worker of workers.slice(1)) await worker.ask("open", { url });
    for (let round = -1; round < rounds; round++) {
      const untilMs = Date.now() + roundMs;
      const counts = await Promise.all(workers.map((worker) => worker.ask("work", { untilMs })));
      if (round >= 0) rates.push((1000 * sum(counts)) / roundMs);
    }
  } finally {
    await endWorkers(workers);
  }
  const rate = median(rates);
  const notes = [verdict(`≥ ${passesMin} passes a second`, rate >= passesMin)];
  const row = { name: "holdfast path lock", figures: [`${Math.round(rate)}/s`], notes };
  printTable(`postgres: one lock, ${processes} processes with one caller each`, [row], ["passes"]);
}
