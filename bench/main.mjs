// Measures all parts against named peers in one run: medians of interleaved rounds, ratios, and disk operations per
// call. At the end it prints one table of all rates.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { measure } from "./measure.mjs";
import { openBench } from "./place.mjs";
import { printRates, tableOfRates } from "./report.mjs";
import { recorder, writeResult } from "./result.mjs";
import {
  isHelpWanted,
  isListWanted,
  isPageWanted,
  isQuick,
  isWanted,
  jsonFile,
  mistakes,
  wishes,
} from "./settings.mjs";

// To add a group: write a file that exports a function of the bench, and add a line here. The name
// before the colon is the capability. Loaded late: the peers that a group imports may have to be
// installed first.
const groups = {
  publish: async () => (await import("./groups/publish.mjs")).publishGroup,
  "locks:uncontended": async () => (await import("./locks/uncontended.mjs")).uncontendedGroup,
  "locks:hand-over": async () => (await import("./locks/hand-over.mjs")).handOverGroup,
  "locks:crowd": async () => (await import("./locks/crowd.mjs")).crowdGroup,
  "locks:scale": async () => (await import("./locks/scale.mjs")).scaleGroup,
  "locks:waiting": async () => (await import("./locks/waiting.mjs")).waitingGroup,
  "events:append": async () => (await import("./events/append.mjs")).appendGroup,
  "events:crowd": async () => (await import("./events/crowd.mjs")).crowdGroup,
  "events:scale": async () => (await import("./events/scale.mjs")).scaleGroup,
  "events:rebuild": async () => (await import("./events/rebuild.mjs")).rebuildGroup,
  "handoff:publish": async () => (await import("./handoff/publish.mjs")).publishGroup,
  "handoff:consume": async () => (await import("./handoff/consume.mjs")).consumeGroup,
  "handoff:crowd": async () => (await import("./handoff/crowd.mjs")).crowdGroup,
  "handoff:ledger": async () => (await import("./handoff/ledger.mjs")).ledgerGroup,
  "objects:put": async () => (await import("./objects/put.mjs")).putGroup,
  "objects:crowd": async () => (await import("./objects/crowd.mjs")).crowdGroup,
  "objects:scale": async () => (await import("./objects/scale.mjs")).scaleGroup,
  "objects:large": async () => (await import("./objects/large.mjs")).largeGroup,
  "files:operations": async () => (await import("./files/operations.mjs")).operationsGroup,
  "files:scale": async () => (await import("./files/scale.mjs")).scaleGroup,
  "files:index-writers": async () => (await import("./crowds/index-writers.mjs")).indexWritersGroup,
  "files:search": async () => (await import("./files/search.mjs")).searchGroup,
  "postgres:write": async () => (await import("./postgres/rates.mjs")).writeGroup,
  "postgres:consume": async () => (await import("./postgres/rates.mjs")).consumeGroup,
  "postgres:hot-lock": async () => (await import("./postgres/hot-lock.mjs")).hotLockGroup,
  "postgres:scale": async () => (await import("./postgres/scale.mjs")).scaleGroup,
  "s3:rates": async () => (await import("./s3/rates.mjs")).ratesGroup,
  "s3:signature": async () => (await import("./s3/signature.mjs")).signatureGroup,
  ...Object.fromEntries(
    ["locks", "events", "files", "put", "publish"].map((part) => [
      `processes:${part}`,
      async () => {
        const { processesGroup } = await import("./crowds/processes.mjs");
        return (bench) => processesGroup(bench, part);
      },
    ]),
  ),
  growth: async () => (await import("./growth/growth.mjs")).growthGroup,
  "console:scale": async () => (await import("./console/scale.mjs")).scaleGroup,
  cli: async () => (await import("./cli/start.mjs")).startGroup,
};
/** Without a name: all that have a peer, and the growth of each part. */
const usual = [
  "publish",
  "locks:uncontended",
  "events:append",
  "events:crowd",
  "handoff:publish",
  "handoff:consume",
  "objects:put",
  "files:operations",
  "s3:rates",
  "postgres:write",
  "processes",
  "cli",
  "growth",
];
const names = Object.keys(groups);
if (isListWanted) {
  console.log(names.join("\n"));
  process.exit(0);
}
if (isHelpWanted) {
  console.log(`Measures Holdfast against named peers in one run: ratios of rates and of processor time (of all processes that take
part), and disk operations per call. Prints tables in Markdown, and one of all rates at the end.

  npm run bench                          all parts beside their peers, and how calls grow
  npm run bench -- publish               one group
  npm run bench -- locks events          all whose names begin with "locks:" or "events:"
  npm run bench -- all                   every group; some take minutes
  npm run bench -- objects:put --only "new key"   the rows that have this in their names, and the peer
  npm run bench -- --seconds 5           measures each rate for 5 seconds; default: about 1, with servers and processes 7
  npm run bench -- --json FILE           writes the result to FILE, too
  npm run bench -- --page                writes bench/result.json, docs/benchmarks.md and its curves
  npm run bench -- --quick               shows in about two minutes that every row runs; its figures mean nothing
  npm run bench -- --list                the names of the groups

Without a name: ${usual.join(", ")}.
Groups: ${names.join(", ")}.
HOLDFAST_BENCH_EVENTS=10000000 makes the log of events:scale a large one; it takes some minutes and 3 GB.
HOLDFAST_BENCH_TICKETS=1000000 makes the backlog of handoff:crowd a long one; it takes some minutes and 5 GB.
HOLDFAST_BENCH_KEYS=1000000 makes the bucket of objects:scale a large one; it takes some minutes and 8 GB.
HOLDFAST_BENCH_FILES=50000 makes the tree of files:search a large one; it takes some minutes and 1 GB.
HOLDFAST_BENCH_LEDGER=10000000 makes the ledger of handoff:ledger a long one; it takes some minutes and 2 GB.
HOLDFAST_BENCH_ROWS=1000000 is the size of the log, box and bucket of postgres:scale, which is its default.
HOLDFAST_BENCH_DIR is where the directories are made; default: the one for temporary files.
Peers of the hand-off: BullMQ where redis-server is installed, SKIP LOCKED where PostgreSQL is. Processor time needs Linux.`);
  process.exit(0);
}
if (mistakes.length > 0) {
  console.error(`An unknown option, or one without its value: ${mistakes.join(", ")}. See --help.`);
  process.exit(2);
}
const meant = (name, wish) => wish === "all" || name === wish || name.startsWith(`${wish}:`);
const unknown = wishes.filter((wish) => !names.some((name) => meant(name, wish)));
if (unknown.length > 0) {
  console.error(`There is no group ${unknown.join(", ")}; there are: ${names.join(", ")}.`);
  process.exit(2);
}

// The peers are not ours to ship: they live in a package of their own.
const here = new URL(".", import.meta.url);
if (!existsSync(new URL("node_modules/pg-boss", here)))
  execFileSync("npm", ["ci", "--silent"], { cwd: here, stdio: "inherit" });

if (isQuick) console.log("A quick run: its figures mean nothing.");
const asked = wishes.length > 0 ? wishes : usual;
for (const [name, load] of Object.entries(groups)) {
  if (!asked.some((wish) => meant(name, wish))) continue;
  const makeGroup = await load();
  const bench = await openBench();
  recorder.begin(name);
  try {
    const group = await makeGroup(bench);
    // Most groups are calls to be repeated; the others know themselves what to do.
    if (group.run === undefined) {
      const contenders = wantedOf(group);
      printRates({ ...group, contenders }, await measure(contenders, bench.counts));
    } else await group.run();
    await group.close?.();
  } finally {
    await bench.close();
  }
}
const result = recorder.result();
if (result.comparisons.length > 1) console.log(`\n## All rates\n\n${tableOfRates(result.comparisons)}`);
if (jsonFile !== undefined) writeResult(jsonFile, result);
if (isPageWanted) {
  const { resultFile, writePage } = await import("./page/write.mjs");
  writeResult(resultFile, result);
  await writePage();
}
process.exit(0);

/** The peers stay: a row is nothing without them. */
function wantedOf({ baseline, contenders }) {
  const rows = contenders.filter(({ name }) => isWanted(name));
  const peers = [baseline, ...rows.flatMap(({ targets = [] }) => targets.map(({ of }) => of))];
  return contenders.filter((each) => rows.includes(each) || peers.includes(each.name));
}
