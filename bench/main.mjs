// Measures the mechanisms against named peers in one run: medians of interleaved rounds, ratios,
// and disk operations per call.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { measure } from "./measure.mjs";
import { openBench } from "./place.mjs";
import { printRates } from "./report.mjs";

// To add a group: write a file that exports a function of the bench, and add a line here. The name
// before the colon is the capability. Loaded late: the peers that a group imports may have to be
// installed first.
const groups = {
  publish: async () => (await import("./groups/publish.mjs")).publishGroup,
  gate: async () => (await import("./groups/gate.mjs")).gateGroup,
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
  "files:search": async () => (await import("./files/search.mjs")).searchGroup,
  "s3:rates": async () => (await import("./s3/rates.mjs")).ratesGroup,
  "s3:signature": async () => (await import("./s3/signature.mjs")).signatureGroup,
};
const names = Object.keys(groups);
if (process.argv.includes("--help") || process.argv.includes("-h")) {
  console.log(`Measures Holdfast against named peers in one run: ratios, and disk operations per call.

  npm run bench                        all groups
  npm run bench -- publish             one of them
  npm run bench -- locks               all whose names begin with "locks:"

Groups: ${names.join(", ")}.
HOLDFAST_BENCH_EVENTS=10000000 makes the log of events:scale a large one; it takes some minutes and 3 GB.
HOLDFAST_BENCH_TICKETS=1000000 makes the backlog of handoff:crowd a long one; it takes some minutes and 5 GB.
HOLDFAST_BENCH_KEYS=1000000 makes the bucket of objects:scale a large one; it takes some minutes and 8 GB.
HOLDFAST_BENCH_FILES=100000 makes the tree of files:search a large one; it takes some minutes and 1 GB.
HOLDFAST_BENCH_LEDGER=10000000 makes the ledger of handoff:ledger a long one; it takes some minutes and 2 GB.
Peers of the hand-off: BullMQ where redis-server is installed, SKIP LOCKED where PostgreSQL is.`);
  process.exit(0);
}
const meant = (name, wish) => name === wish || name.startsWith(`${wish}:`);
const wanted = process.argv.slice(2);
const unknown = wanted.filter((wish) => !names.some((name) => meant(name, wish)));
if (unknown.length > 0) {
  console.error(`There is no group ${unknown.join(", ")}; there are: ${names.join(", ")}.`);
  process.exit(2);
}

// The peers are not ours to ship: they live in a package of their own.
const here = new URL(".", import.meta.url);
if (!existsSync(new URL("node_modules", here)))
  execFileSync("npm", ["ci", "--silent"], { cwd: here, stdio: "inherit" });

for (const [name, load] of Object.entries(groups)) {
  if (wanted.length > 0 && !wanted.some((wish) => meant(name, wish))) continue;
  const makeGroup = await load();
  const bench = await openBench();
  try {
    const group = await makeGroup(bench);
    // Most groups are calls to be repeated; the others know themselves what to do.
    if (group.run === undefined) printRates(group, await measure(group.contenders, bench.counts));
    else await group.run();
    await group.close?.();
  } finally {
    await bench.close();
  }
}
process.exit(0);
