// Runs Holdfast as Windows processes under Wine, and Windows and Linux processes together on one folder.
//   npm run test:windows                      everything, on each version of Node
//   npm run test:windows -- --node 22         on one version
//   npm run test:windows -- --only tests      steps whose name contains the word
//   npm run test:windows -- --file os-lock    of the tests, the files whose path contains the word
//   npm run test:windows -- --part redo       of the torture, one part
//   npm run test:windows -- --operations 500 --kills 20    how much must happen in each torture and each crowd
//   npm run test:windows -- --keep            keeps the folder with the logs also after a success
// Where Wine can neither be found nor installed, it says so and ends with 0.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundlePrograms } from "./bundle.mjs";
import { runCrowd, runMixedCrowd } from "./steps/crowd.mjs";
import { runTests } from "./steps/tests.mjs";
import { runTorture } from "./steps/torture.mjs";
import { testFilesOf } from "./suites.mjs";
import { findOrInstallWine, installRuntimes, WinePrefix } from "./wine.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const nodeVersions = ["20", "22"];
const steps = { tests: runTests, torture: runTorture, crowd: runCrowd, mixed: runMixedCrowd };
const parts = ["chain", "gate", "semaphore", "locks", "redo", "events", "handoff", "objects", "files"];

const { values } = parseArgs({
  options: {
    node: { type: "string", multiple: true, default: nodeVersions },
    only: { type: "string", default: "" },
    file: { type: "string", default: "" },
    part: { type: "string", default: "" },
    // A run in which nothing happened proves nothing.
    operations: { type: "string", default: "100" },
    kills: { type: "string", default: "5" },
    keep: { type: "boolean", default: false },
  },
});

const atLeast = { appends: Number(values.operations), kills: Number(values.kills) };
const wine = findOrInstallWine();
const missing =
  wine === undefined ? "Wine (Debian: apt-get install wine wine64)" : installRuntimes(nodeVersions) ? undefined : "Node for Windows, which npm could not install"; // prettier-ignore
if (missing !== undefined) {
  console.log(`test:windows is skipped: there is no ${missing}.`);
  process.exit(0);
}

const scratch = mkdtempSync(join(tmpdir(), "holdfast-windows-"));
const prefixes = values.node.map((version) => new WinePrefix(wine, join(scratch, `node${version}`), version));
const endAll = () => prefixes.forEach((prefix) => prefix.end());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.once(signal, () => {
    endAll();
    process.exit(1);
  });
let failures = 0;
try {
  const files = testFilesOf(root).filter((file) => file.includes(values.file));
  const programs = await bundlePrograms(join(scratch, "bundle"), files);
  await Promise.all(
    prefixes.map((prefix) =>
      runOn(prefix, { programs, files, parts: parts.filter((part) => part.includes(values.part)), atLeast }),
    ),
  );
} finally {
  endAll();
  if (failures === 0 && !values.keep) rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  else console.log(`The logs are in ${scratch}`);
}
process.exitCode = failures === 0 ? 0 : 1;

async function runOn(prefix, tools) {
  await prefix.make();
  for (const [name, step] of Object.entries(steps)) {
    if (!name.includes(values.only)) continue;
    const began = performance.now();
    const { figures, problems } = await step(prefix, tools);
    const seconds = Math.round((performance.now() - began) / 1000);
    console.log(
      `Node ${prefix.version}, ${name}: ${figures}, in ${seconds} s${problems.length === 0 ? "" : ": FAILED"}`,
    );
    for (const problem of problems) console.error(`  ${problem}`);
    failures += problems.length;
  }
}
