// What a path lock costs when many others are held, and a tree lock when much lies below it.
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { sum, timeCalls } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";
import { usersWorld } from "./worlds.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const liveLocks = sized(1500, 100);
const cpuMax = 3;
const megabytesMax = 40;
const directories = sized(1000, 10);
const filesPerDirectory = 50;
/** Equal but for noise. */
const treeRatioMax = 1.25;

export async function scaleGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  makeTree(`${directory}/free/one`, 1, 1);
  makeTree(`${directory}/free/many`, directories, filesPerDirectory);
  const workers = startWorkers(worker, 1);
  const free = await usersWorld.openPathLocks(`${directory}/free`);
  const busy = await usersWorld.openPathLocks(`${directory}/busy`);
  try {
    // In another process: what its holder does to keep them must not be taken for what an acquire
    // costs.
    await workers[0].ask("holdMany", { directory: `${directory}/busy`, count: liveLocks });
    const calls = {
      free: async () => (await free.acquire("file")).release(),
      busy: async () => (await busy.acquire("file")).release(),
      one: async () => (await free.acquire("one", { mode: "tree" })).release(),
      many: async () => (await free.acquire("many", { mode: "tree" })).release(),
    };
    const times = await timeCalls(calls, { callsPerRound: 10 });
    print(times, diskUse(`${directory}/busy`));
  } finally {
    await Promise.all([free.close(), busy.close(), endWorkers(workers)]);
  }
}

function makeTree(directory, directories, filesPerDirectory) {
  for (let i = 0; i < directories; i++) {
    mkdirSync(`${directory}/${i}`, { recursive: true });
    for (let j = 0; j < filesPerDirectory; j++) writeFileSync(`${directory}/${i}/${j}`, "");
  }
}

/** What the files take, in bytes. A file with several names counts once. */
function diskUse(directory) {
  const inodes = new Map();
  for (const name of readdirSync(directory, { recursive: true })) {
    const { ino, blocks } = lstatSync(`${directory}/${String(name)}`);
    inodes.set(ino, 512 * blocks);
  }
  return sum([...inodes.values()]);
}

function print(times, bytes) {
  const row = (name, call, base, notes) => {
    const [{ ms, cpuUs }, before] = [times.get(call), times.get(base)];
    return {
      name,
      figures: [ratio(ms / before.ms), ratio(cpuUs / before.cpuUs), `${ms.toFixed(3)} ms`, `${Math.round(cpuUs)} µs`],
      notes,
    };
  };
  const cpuRatio = times.get("busy").cpuUs / times.get("free").cpuUs;
  const treeRatio = times.get("many").ms / times.get("one").ms;
  const megabytes = bytes / 1e6;
  printTable(
    "locks: acquire and release of a path lock (ratios to the row before)",
    [
      row("no other lock", "free", "free"),
      row(`${liveLocks} other live locks`, "busy", "free", [
        verdict(`< ${cpuMax} × CPU`, cpuRatio < cpuMax),
        `${megabytes.toFixed(1)} MB on the disk`,
        verdict(`< ${megabytesMax} MB`, megabytes < megabytesMax),
      ]),
      row("a tree with one file", "one", "one"),
      row(`a tree with ${directories * filesPerDirectory} files`, "many", "one", [
        verdict(`the same, up to ${treeRatioMax} ×`, treeRatio <= treeRatioMax),
      ]),
    ],
    ["time, ×", "CPU, ×", "median", "CPU"],
  );
}
