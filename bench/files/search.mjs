// Many files that are added and indexed; then the index as a new process finds it, and searches while another process
// writes all the time.
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openFiles } from "../../dist/files/index.js";
import { endedChildrenCpuUs, ownCpuUs } from "../cpu.mjs";
import { median, quantile } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";

const files = Number(process.env.HOLDFAST_BENCH_FILES ?? sized(10_000, 200));
const filesPerDirectory = 100;
const wordsPerFile = 120;
const searchingMs = sized(10_000, 100);
const searchesMin = sized(200, 5);
const newProcesses = sized(7, 1);
/** Targets of a tree of 50,000 files, as times of one file and of all. */
const indexMsMax = 60_000 / 50_000;
const searchMsMax = 500;
const vocabulary = Array.from({ length: 5_000 }, (_, index) => `${syllable(index)}${syllable(index * 7 + 3)}`);

export async function searchGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const root = `${directory}/tree`;
  const added = await addAll(root, `${directory}/staged`);
  printTable(`files: ${files} files of ${wordsPerFile} words, added and indexed by one process`, added);
  printTable("files: the index of these, in a new process", await newProcess(root));
  printTable("files: searches while another process writes all the time", [
    await underWrites(root, { work: false, name: "in a process that only searches" }),
    await underWrites(root, { work: true, name: "in a process that indexes, too" }),
  ]);
}

async function addAll(root, staged) {
  for (let file = 0; file < files; file++) {
    const below = `${staged}/${Math.floor(file / filesPerDirectory)}`;
    if (file % filesPerDirectory === 0) mkdirSync(below, { recursive: true });
    writeFileSync(`${below}/${file}.md`, textOf(file));
  }
  const tree = await openFiles(root);
  const startMs = performance.now();
  await tree.add("all", staged);
  const addedMs = performance.now() - startMs;
  const cpuBefore = ownCpuUs();
  const stopTelling = tellProgress(`${root}/.holdfast/files/documents`);
  await tree.settled();
  const indexedMs = performance.now() - startMs - addedMs;
  stopTelling();
  const indexedCpuUs = ownCpuUs() - cpuBefore;
  const hits = await tree.search(vocabulary[1], { limit: 10_000 });
  await tree.close();
  const rate = (ms) => [`${(ms / 1000).toFixed(1)} s`, `${Math.round((1000 * files) / ms)} files/s`];
  const indexMs = indexedMs / files;
  return [
    { name: "added, durable, in one step", figures: rate(addedMs) },
    {
      name: "first index",
      figures: [...rate(indexedMs), `${(indexedCpuUs / 1e6).toFixed(1)} s CPU`],
      notes: [verdict("found", hits.length > 0), verdict("≤ 60 s for 50,000 files", indexMs <= indexMsMax)],
    },
  ];
}

/** How many documents are there, each second, for a person at a terminal. */
function tellProgress(directory) {
  if (!process.stderr.isTTY) return () => undefined;
  const tell = () => {
    let count = 0;
    for (const shard of readdirSync(directory))
      if (/^[0-9a-f]{2}$/.test(shard)) count += readdirSync(`${directory}/${shard}`).length;
    process.stderr.write(`\r  indexed: ${count} of ${files}`);
  };
  const timer = setInterval(tell, 1000);
  return () => {
    clearInterval(timer);
    process.stderr.write(`\r${" ".repeat(40)}\r`);
  };
}

/** Each time a process that has just been started: nothing is compiled or cached in it. */
async function newProcess(root) {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const command = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));
  const firsts = [];
  const commands = [];
  let commandCpuUs = 0;
  for (let count = 0; count < newProcesses; count++) {
    firsts.push(JSON.parse(execFileSync(process.execPath, [worker, "search", root], { encoding: "utf8" })));
    const startMs = performance.now();
    const cpuBefore = endedChildrenCpuUs();
    execFileSync(process.execPath, [command, "files", "search", root, vocabulary[count]], { stdio: "ignore" });
    commands.push(performance.now() - startMs);
    commandCpuUs += endedChildrenCpuUs() - cpuBefore;
  }
  const commandMs = median(commands);
  const firstMs = median(firsts.map(({ tookMs }) => tookMs));
  return [
    {
      name: "opened, and the first search",
      figures: [`${firstMs.toFixed(0)} ms`, `${median(firsts.map(({ cpuMs }) => cpuMs)).toFixed(0)} ms CPU`],
      notes: [verdict("< 0.5 s, for 50,000 files", firstMs < searchMsMax)],
    },
    {
      name: "`holdfast files search`, from start to end",
      figures: [`${commandMs.toFixed(0)} ms`, `${(commandCpuUs / 1000 / newProcesses).toFixed(0)} ms CPU`],
      notes: [verdict("< 1 s", commandMs < 1000)],
    },
  ];
}

async function underWrites(root, { work, name }) {
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const tree = await openFiles(root, { work });
  await tree.search(vocabulary[0]);
  const writer = fork(worker, ["write", root]);
  await once(writer, "message");
  const times = [];
  const before = process.cpuUsage();
  const startMs = performance.now();
  for (let n = 0; n < searchesMin || performance.now() - startMs < searchingMs; n++) {
    const calledMs = performance.now();
    await tree.search(`${vocabulary[n % vocabulary.length]} ${vocabulary[(n * 31) % vocabulary.length]}`);
    times.push(performance.now() - calledMs);
  }
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  writer.send("stop");
  const [{ written }] = await once(writer, "message");
  if (writer.exitCode === null) await once(writer, "exit");
  await tree.close();
  const p99Ms = quantile(times, 0.99);
  return {
    name,
    figures: [
      `p50 ${median(times).toFixed(1)} ms`,
      `p99 ${p99Ms.toFixed(1)} ms`,
      `${((user + system) / 1000 / times.length).toFixed(1)} ms CPU`,
      `${times.length} searches`,
      `${Math.round((1000 * written) / tookMs)} writes/s`,
    ],
    notes: work ? [] : [verdict("p99 < 50 ms", p99Ms < 50)],
  };
}

/** Common words are in many files, rare ones in few. */
function textOf(file) {
  let seed = file * 2_654_435_761 + 1;
  const words = Array.from({ length: wordsPerFile }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const part = seed / 2 ** 31;
    return vocabulary[Math.floor(part * part * part * vocabulary.length)];
  });
  return `# File ${file}\n\n${words.join(" ")}\n`;
}

function syllable(index) {
  const consonants = "bdfghklmnprstvwz";
  const vowels = "aeiou";
  const at = (text, place) => text[Math.floor(index / place) % text.length];
  return `${at(consonants, 1)}${at(vowels, 16)}${at(consonants, 5)}`;
}
