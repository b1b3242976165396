// What it costs to wait: the part of a core that a process takes while another process holds what
// it wants.
import { mkdirSync } from "node:fs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { contestants } from "./contestants.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";
import { usersWorld } from "./worlds.mjs";

const worker = new URL("worker.mjs", import.meta.url);
const settleMs = sized(1000, 100);
const waitMs = sized(8000, 200);
const percentMax = 1;
const targeted = ["store lock", "path lock", "semaphore"];
const names = [...targeted, "proper-lockfile, retry 100 ms", "proper-lockfile, retry 10 ms", "wx, unlink; poll 100 ms"];

export async function waitingGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const locks = [];
  // All at once, each in a process of its own: what they cost is counted by process. One more that
  // waits for nothing.
  const workers = startWorkers(worker, names.length + 1);
  const details = names.map((name, index) => ({ name, directory: `${directory}/${index}` }));
  try {
    for (const { name, directory } of details) {
      mkdirSync(directory);
      const lock = await contestants[name](directory, usersWorld);
      locks.push({ lock, release: await lock.acquire() });
    }
    const parts = await Promise.all(
      [...details, {}].map((lock, index) => workers[index].ask("waitIdly", { ...lock, settleMs, waitMs })),
    );
    const rows = [...names, "an idle process"].map((name, index) => rowOf(name, 100 * parts[index]));
    printTable(`locks: CPU of one waiter, over ${waitMs / 1000} s, of one core`, rows);
  } finally {
    for (const { lock, release } of locks) {
      await release();
      await lock.close();
    }
    await endWorkers(workers);
  }
}

function rowOf(name, percent) {
  const notes = targeted.includes(name) ? [verdict(`< ${percentMax} %`, percent < percentMax)] : [];
  return { name, figures: [`${percent.toFixed(2)} %`], notes };
}
