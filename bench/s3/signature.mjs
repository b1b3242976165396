// What the check of a signature takes of a small get: both in processor time.
import { verifySignature } from "../../dist/s3/signature/verify.js";
import { parseTarget } from "../../dist/s3/http/raw-target.js";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { openServers, pair } from "./contestants.mjs";
import { fill, load } from "./load.mjs";
import { signedRequest } from "./signing.mjs";

const checks = sized(20_000, 100);
const getMs = sized(4_000, 50);
const shareMax = 0.1;

export async function signatureGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const servers = await openServers(directory);
  try {
    const { url, cpuUs } = servers.holdfast;
    await fill(url, 1024);
    await load(url, { method: "GET", size: 1024, clients: 8, forMs: sized(1_000, 0), requestsMin: sized(10_000, 10) });
    const before = cpuUs();
    const { count } = await load(url, { method: "GET", size: 1024, clients: 8, forMs: getMs });
    const getUs = (cpuUs() - before) / count;
    const checkUs = timeOfCheck(url);
    const share = checkUs / getUs;
    printTable("s3: the signature of a small get", [
      { name: "GET 1 KiB, all of the gateway", figures: [`${getUs.toFixed(0)} µs CPU`] },
      {
        name: "the check of its signature",
        figures: [`${checkUs.toFixed(1)} µs CPU`],
        notes: [`${(100 * share).toFixed(1)} %`, verdict(`< ${100 * shareMax} %`, share < shareMax)],
      },
    ]);
  } finally {
    for (const server of Object.values(servers)) await server.close();
  }
}

function timeOfCheck(url) {
  const { path, headers } = signedRequest(pair, { method: "GET", url, path: "/bench/1024-1" });
  const verifier = { region: "us-east-1", nowMs: Date.now(), findSecret: () => pair.secretAccessKey };
  const check = () => {
    const target = parseTarget(path);
    if (verifySignature({ method: "GET", target, headers }, verifier) === undefined) throw new Error("not signed");
  };
  for (let warm = 0; warm < checks; warm++) check();
  const { user, system } = process.cpuUsage();
  for (let count = 0; count < checks; count++) check();
  const after = process.cpuUsage();
  return (after.user + after.system - user - system) / checks;
}
