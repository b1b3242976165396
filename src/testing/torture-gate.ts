// The torture of the gate: a file that everybody reads, changes and replaces, with nothing but the gate to protect it.
import { openGate } from "../durable/open-gate.ts";
import { replace } from "../durable/publish.ts";
import { isHoldfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import { addOne, type Counter } from "./scenarios/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "./torture-task.ts";

const bytesMax = 100_000;

export const gateTask: TortureTask = {
  async work(tools, signal) {
    const { ground, life, directory, sabotage, report } = tools;
    const gate = await openGate(ground.ports, ground.staging, directory);
    const sweep = sweeper(tools);
    try {
      while (!signal.aborted) {
        life.mustGoOn();
        const hold = sabotage ? undefined : await gate.acquire({ signal });
        report({ kind: "entered" });
        try {
          await countOne(tools);
        } finally {
          report({ kind: "left" });
          await hold?.release();
        }
        await sweep();
      }
    } catch (error) {
      if (error !== signal.reason) throw error;
    } finally {
      await gate.close();
    }
  },

  async find({ ground, directory }) {
    return { state: await readCounts(ground.ports.disk, directory), epochs: 0 };
  },
};

async function countOne({ ground, name, directory, sync, report }: TortureTools): Promise<void> {
  const counts = addOne(await readCounts(ground.ports.disk, directory), name);
  try {
    await replace(ground.staging, pathOf(directory), Buffer.from(JSON.stringify(counts)), { sync });
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
    return report({ kind: "unknown" });
  }
  report({ kind: "won", count: counts[name] ?? 0, number: totalOf(counts) });
}

async function readCounts(disk: Disk, directory: string): Promise<Counter> {
  try {
    return JSON.parse(Buffer.from(await disk.readFile(pathOf(directory), bytesMax)).toString()) as Counter;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return {};
    throw error;
  }
}

function pathOf(directory: string): string {
  return `${directory}/counts.json`;
}

/** Every update makes it one more, so it tells the updates apart as the numbers of a chain do. */
function totalOf(counts: Counter): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
