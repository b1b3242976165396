// What a path lock costs when many others are held, and a tree lock when much lies below it.
import { mkdirSync, writeFileSync } from "node:fs";
import { timeCalls } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { endWorkers, startWorkers } from "./processes.mjs";
import { usersWorld } from "./worlds.mjs";

const liveLocks = 1000;
const acquireMsMax = 2;
const directories = 1000;
const filesPerDirectory = 50;
/** Equal but for noise. */
const treeRatioMax = 1.25;

export async function scaleGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  makeTree(`${directory}/free/one`, 1, 1);
  makeTree(`${directory}/free/many`, directories, filesPerDirectory);
  const workers = startWorkers(1);
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
    print(times);
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

function print(times) {
  const row = (name, call, base, notes) => ({
    name,
    figures: [ratio(times.get(call) / times.get(base)), `${times.get(call).toFixed(3)} ms`],
    notes,
  });
  const treeRatio = times.get("many") / times.get("one");
  printTable("locks: acquire and release of a path lock, median (ratio to the row before)", [
    row("no other lock", "free", "free"),
    row(`${liveLocks} other live locks`, "busy", "free", [
      verdict(`< ${acquireMsMax} ms`, times.get("busy") < acquireMsMax),
    ]),
    row("a tree with one file", "one", "one"),
    row(`a tree with ${directories * filesPerDirectory} files`, "many", "one", [
      verdict(`the same, up to ${treeRatioMax} ×`, treeRatio <= treeRatioMax),
    ]),
  ]);
}
