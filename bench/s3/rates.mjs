// Puts and gets through the gateway beside s3rver and the floor, signed, in interleaved rounds.
import { printRates } from "../report.mjs";
import { isWanted, roundMsOf, sized } from "../settings.mjs";
import { openServers, peers } from "./contestants.mjs";
import { fill, load } from "./load.mjs";

const rounds = sized(7, 1);
const roundMs = roundMsOf(1_000, 20, rounds);
const [kibibyte, mebibyte] = [2 ** 10, 2 ** 20];
/** `cpuMax`: the processor time of a request, × s3rver. */
const cases = [
  { method: "PUT", size: kibibyte, clients: 16, cpuMax: 1.2 },
  { method: "GET", size: kibibyte, clients: 16, ratioMin: 2 },
  { method: "PUT", size: mebibyte, clients: 16, cpuMax: 1.2 },
  { method: "GET", size: mebibyte, clients: 16, ratioMin: 1.8 },
  { method: "PUT", size: 64 * mebibyte, clients: 2, cpuMax: 1.4 },
];
/**
 * The first round warms up, by requests and not by time: what is compared are programs that have been running for a while,
 * and on a busy machine a second is too short for Node to compile what they do.
 */
const warmUpRequests = (size) => sized(Math.max(4, Math.min(3_000, (300 * mebibyte) / size)), 1);

export async function ratesGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const servers = await openServers(directory);
  try {
    const wanted = cases.filter((each) => isWanted(nameOf(each)));
    for (const { url } of Object.values(servers))
      for (const { method, size } of wanted) if (method === "GET") await fill(url, size);
    for (const each of wanted) await compare(servers, each);
  } finally {
    for (const server of Object.values(servers)) await server.close();
  }
}

function nameOf({ method, size, clients }) {
  const bytes = size < mebibyte ? `${size / kibibyte} KiB` : `${size / mebibyte} MiB`;
  return `${method} ${bytes}, ${clients} clients`;
}

async function compare(servers, each) {
  const { method, size, clients, ratioMin, cpuMax } = each;
  const results = Object.fromEntries(Object.keys(servers).map((name) => [name, { rates: [], calls: 0, cpuUs: 0 }]));
  for (let round = -1; round < rounds; round++)
    for (const [name, { url, cpuUs }] of Object.entries(servers)) {
      const before = cpuUs();
      const { rate, count } = await load(url, {
        method,
        size,
        clients,
        forMs: roundMs,
        requestsMin: round < 0 ? warmUpRequests(size) : 0,
      });
      if (round < 0) continue;
      results[name].rates.push(rate);
      results[name].calls += count;
      results[name].cpuUs += cpuUs() - before;
    }
  const contenders = Object.keys(results).map((name) => ({
    name: peers[name],
    targets: name === "holdfast" ? [{ ratioMin, cpuMax, of: peers.s3rver }] : [],
  }));
  const byName = new Map(Object.entries(results).map(([name, result]) => [peers[name], result]));
  printRates({ title: `s3: ${nameOf(each)}, signed`, baseline: peers.s3rver, contenders }, byName);
}
