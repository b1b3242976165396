// Measures the mechanisms against named peers in one run: medians of interleaved rounds, ratios, and disk operations per call.
//   npm run bench                 all groups
//   npm run bench -- publish      one of them
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { measure, print } from "./measure.mjs";
import { openBench } from "./place.mjs";

// Loaded late: the peers that they import may have to be installed first.
const groups = {
  publish: async () => (await import("./groups/publish.mjs")).publishGroup,
  gate: async () => (await import("./groups/gate.mjs")).gateGroup,
  commit: async () => (await import("./groups/commit.mjs")).commitGroup,
};
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const unknown = wanted.filter((name) => !(name in groups));
if (unknown.length > 0) {
  console.error(`There is no group ${unknown.join(", ")}; there are: ${Object.keys(groups).join(", ")}.`);
  process.exit(2);
}

// The peers are not ours to ship: they live in a package of their own.
const here = new URL(".", import.meta.url);
if (!existsSync(new URL("node_modules", here)))
  execFileSync("npm", ["ci", "--silent"], { cwd: here, stdio: "inherit" });

for (const [name, load] of Object.entries(groups)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const makeGroup = await load();
  const bench = await openBench();
  try {
    const group = await makeGroup(bench);
    print(group, await measure(group.contenders, bench.counts));
    await group.close?.();
  } finally {
    await bench.close();
  }
}
process.exit(0);
