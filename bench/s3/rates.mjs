// Puts and gets through the gateway beside s3rver and the floor, signed, in interleaved rounds.
import { median } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { openServers, peers } from "./contestants.mjs";
import { fill, load } from "./load.mjs";

const rounds = 7;
const roundMs = 1_000;
/**
 * The first round warms up, by requests and not by time: what is compared are programs that have been
 * running for a while, and on a busy machine a second is too short for Node to compile what they do.
 */
const warmUpRequests = { 1024: 3_000, [1024 * 1024]: 300 };
const cases = [
  { method: "PUT", size: 1024, ratioMin: 1.5 },
  { method: "GET", size: 1024, ratioMin: 2 },
  { method: "PUT", size: 1024 * 1024, ratioMin: 1.1 },
  { method: "GET", size: 1024 * 1024, ratioMin: 1.8 },
].flatMap((each) => [8, 32].map((clients) => ({ ...each, clients })));

export async function ratesGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const servers = await openServers(directory);
  try {
    for (const { url } of Object.values(servers)) for (const size of [1024, 1024 * 1024]) await fill(url, size);
    for (const each of cases) await compare(servers, each);
  } finally {
    for (const server of Object.values(servers)) await server.close();
  }
}

async function compare(servers, { method, size, clients, ratioMin }) {
  const results = Object.fromEntries(Object.keys(servers).map((name) => [name, { rates: [], count: 0, cpuUs: 0 }]));
  for (let round = -1; round < rounds; round++)
    for (const [name, { url, cpuUs }] of Object.entries(servers)) {
      const before = cpuUs();
      const { rate, count } = await load(url, {
        method,
        size,
        clients,
        forMs: roundMs,
        requestsMin: round < 0 ? warmUpRequests[size] : 0,
      });
      if (round < 0) continue;
      results[name].rates.push(rate);
      results[name].count += count;
      results[name].cpuUs += cpuUs() - before;
    }
  const against = median(results.holdfast.rates.map((rate, round) => rate / results.s3rver.rates[round]));
  const rows = Object.entries(results).map(([name, { rates, count, cpuUs }]) => ({
    name: peers[name],
    figures: [
      ratio(median(rates.map((rate, round) => rate / results.s3rver.rates[round]))),
      `${Math.round(median(rates))}/s`,
      `${Math.round(cpuUs / count)} µs CPU`,
    ],
    notes: name === "holdfast" ? [verdict(`≥ ${ratioMin} × s3rver`, against >= ratioMin)] : [],
  }));
  const what = `${method} ${size === 1024 ? "1 KiB" : "1 MiB"}, ${clients} clients`;
  printTable(`s3: ${what}, signed (ratio to: s3rver)`, rows);
}
