// Cuts the power under real processes, on real file systems in loop devices, and audits what is left. Needs root and Linux; touches nothing but images of its own.
//   npm run test:power                              ext4 and xfs, four cuts each
//   npm run test:power -- --file-system xfs         one of them
//   npm run test:power -- --cuts 20                 so many each
//   npm run test:power -- --sabotage                a writer that acknowledges without a sync: passes when its loss is found
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { cut } from "./cut.mjs";
import { findMissing, compileShutdown } from "./tools.mjs";

const { values } = parseArgs({
  options: {
    "file-system": { type: "string", multiple: true, default: ["ext4", "xfs"] },
    cuts: { type: "string", default: "4" },
    sabotage: { type: "boolean", default: false },
    /** Said by this program to itself. */
    inside: { type: "boolean", default: false },
  },
});
const fileSystems = values["file-system"];

const missing = findMissing(fileSystems);
if (missing.length > 0) {
  console.error(`test:power cannot run here:\n${missing.map((each) => `  - ${each}`).join("\n")}`);
  process.exit(2);
}
if (!values.inside) {
  // In a mount namespace of its own: no other process can keep one of our mounts alive, and none is
  // left when this ends.
  const again = ["-m", "--propagation", "private", process.execPath, ...process.argv.slice(1), "--inside"];
  try {
    execFileSync("unshare", again, { stdio: "inherit" });
  } catch (error) {
    process.exit(error.status ?? 1);
  }
  process.exit(0);
}

const scratch = mkdtempSync(join(tmpdir(), "holdfast-power-"));
let failures = 0;
try {
  const shutdown = compileShutdown(scratch);
  for (const fileSystem of fileSystems)
    for (let number = 1; number <= Number(values.cuts); number++) {
      // Every other one comes back in the same boot, as a disk that was pulled and put back.
      const isSameBoot = number % 2 === 0;
      // Every fourth one without the import, whose events fill segments: then lines stand behind
      // the head that came back.
      const isAllSynced = number % 4 === 0;
      const { sabotage } = values;
      const { figures, problems } = await cut({ scratch, shutdown, fileSystem, isSameBoot, isAllSynced, sabotage });
      const what = `${fileSystem}, cut ${number}${isSameBoot ? ", back in the same boot" : ""}`;
      console.log(`${what}: ${figures}${problems.length === 0 ? ", all there" : ""}`);
      for (const problem of problems) console.error(`  ${problem}`);
      if (problems.length > 0) failures++;
    }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
if (values.sabotage ? failures === 0 : failures > 0) {
  console.error(values.sabotage ? "The sabotage was not found." : `${failures} cut(s) took what was promised.`);
  process.exit(1);
}
