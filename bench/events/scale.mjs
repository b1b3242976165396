// What a log costs that has grown: opening it, its memory, a condition, an id, a scan, and how soon
// another process sees an append.
import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { fill, openHoldfast } from "./contestants.mjs";

/** Events; HOLDFAST_BENCH_EVENTS=10000000 for the large one, which takes some minutes and 3 GB. */
const size = Number(process.env.HOLDFAST_BENCH_EVENTS ?? sized(1_000_000, 10_000));

export async function scaleGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const place = `${directory}/log`;
  mkdirSync(place);
  const { events, close } = await openHoldfast(place, { durability: "none" });
  await fill(events, size);
  await close();
  const worker = fileURLToPath(new URL("scale-worker.mjs", import.meta.url));
  // In a process of its own, or the memory of filling would be counted. Twice: the first one makes
  // the indexes.
  await ask(worker, place);
  const found = await ask(worker, place);
  const row = (name, figure, note) => ({ name, figures: [figure], notes: note === undefined ? [] : [note] });
  printTable(`events: a log of ${size.toLocaleString("en")} events`, [
    row("open", `${found.openMs.toFixed(0)} ms`, verdict("< 60 ms", found.openMs < 60)),
    row("condition, after = head", `${found.conditionUs.toFixed(2)} µs`, verdict("< 1 µs", found.conditionUs < 1)),
    row("condition, unseen tag, no after", `${found.uniqueUs.toFixed(1)} µs`),
    row("an id that is not there", `${found.idUs.toFixed(1)} µs`),
    row(
      "scan, all events",
      `${(found.scanPerSecond / 1e6).toFixed(2)} M/s`,
      verdict("≥ 0.7 M/s", found.scanPerSecond >= 7e5),
    ),
    row("read by tag, 1 of 1000", `${(found.tagPerSecond / 1e3).toFixed(0)} k/s`),
    row("memory over an empty process", `${found.memoryMb.toFixed(0)} MB`, verdict("< 60 MB", found.memoryMb < 60)),
    row("another process sees an append after", `${found.tailMs.toFixed(2)} ms`, verdict("< 5 ms", found.tailMs < 5)),
  ]);
}

function ask(worker, place) {
  return new Promise((resolve, reject) => {
    const child = fork(worker, [place], { execArgv: ["--expose-gc"] });
    child.once("message", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
}
