// A directory on a real disk with a ground in it whose disk operations are counted.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ground } from "../dist/durable/index.js";
import { openNodePorts } from "../dist/ports/node/ports.js";
import { Counts, countingPorts } from "./counts.mjs";

export async function openBench() {
  const directory = mkdtempSync(join(process.env.HOLDFAST_BENCH_DIR ?? tmpdir(), "holdfast-bench-"));
  const counts = new Counts();
  const ground = await Ground.open(countingPorts(await openNodePorts(directory), counts), `${directory}/ground`);
  return {
    directory,
    ground,
    counts,
    close: async () => {
      await ground.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
