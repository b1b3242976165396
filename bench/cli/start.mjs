// What a command of a shell script costs, from its start to its end, beside a Node that does nothing.
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { endedChildrenCpuUs } from "../cpu.mjs";

const holdfast = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));
const bare = "node -e 0";

export async function startGroup({ directory }) {
  for (const name of ["store", "log"]) mkdirSync(`${directory}/${name}`);
  const command = (name, args, targets) => ({
    name,
    targets,
    cpuUs: endedChildrenCpuUs,
    call: async () => {
      const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
      if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
    },
  });
  const atMost = (cpuMax) => [{ cpuMax, of: bare }];
  const append = ["events", "append", `${directory}/log`, "--type", "Sold", "--data", "{}"];
  return {
    title: "cli: one command, from start to end",
    baseline: bare,
    contenders: [
      command(bare, ["-e", "0"]),
      command("holdfast --help", [holdfast, "--help"], atMost(1.4)),
      command(
        "holdfast run, in a store",
        [holdfast, "run", "--store", `${directory}/store`, "--lock", "nightly", "--", "true"],
        atMost(2),
      ),
      command("holdfast events append", [holdfast, ...append], atMost(2.5)),
    ],
  };
}
