// A file that all processes read, change and replace, protected only by a lock.
import { replace } from "../../src/durable/publish/publish.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { hasErrno } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { addOne, type Counter } from "../scenarios/durable/counter.ts";
import type { TortureTools } from "./task.ts";

const bytesMax = 100_000;

/** Reads the file, adds one, replaces it, and reports the answer. */
export async function countOne({ ground, name, directory, sync, report }: TortureTools): Promise<void> {
  const counts = addOne(await readCounts(ground.ports.disk, directory), name);
  try {
    await replace(ground.staging, pathOf(directory), Buffer.from(JSON.stringify(counts)), { sync });
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
    return report({ kind: "unknown" });
  }
  report({ kind: "won", count: counts[name] ?? 0, number: totalOf(counts) });
}

export async function readCounts(disk: Disk, directory: string): Promise<Counter> {
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

/** Every update increases the total by one, so the total identifies updates as the numbers of a chain do. */
function totalOf(counts: Counter): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
