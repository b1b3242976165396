// The torture of path locks and redo: counters in a small tree, each changed under a lock that covers it in one of
// several ways.
import { setTimeout as sleep } from "node:timers/promises";
import { ensureDirectory } from "../../src/durable/publish/directory.ts";
import { createUniqueFile } from "../../src/durable/publish/unique-file.ts";
import { replace } from "../../src/durable/publish/publish.ts";
import { isHoldfastError } from "../../src/errors.ts";
import type { LockRequest } from "../../src/locks/path/path-locks.ts";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { hasErrno } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { Chance } from "../processes/chance.ts";
import { addOne, type Counter } from "../scenarios/durable/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

const bytesMax = 100_000;
/** So small that the table rolls about every second. */
const slotsPerEpoch = 64;

/** One file under one lock. The known-wrong variant checks and writes in two steps, and loses updates. */
export const redoTask: TortureTask = {
  promise: "loses no acknowledged update, though living holders lose their lease all the time",
  longRuns: [{ seed: 6, seconds: 12, atLeast: { appends: 20, livesOver: 10 } }],
  sabotage: { about: "checks its hold and then renames", seed: 7, needsStops: true },
  leaseMs: 200,
  ...countersTask(["count"]),
};

/** A nested tree, under locks that conflict in every way. */
export const locksTask: TortureTask = {
  promise: "keeps conflicting holders apart on a nested tree, though holders are killed and holds broken",
  // The table rolls meanwhile.
  longRuns: [{ seed: 5, seconds: 10, atLeast: { appends: 100, kills: 10, livesOver: 1 }, epochsMin: 3 }],
  ...countersTask(["a/x", "a/y", "b/x"]),
};

function countersTask(leaves: readonly string[]): Pick<TortureTask, "dawdling" | "work" | "find"> {
  return {
    dawdling: 0.003,

    async work(tools, signal) {
      const { ground, directory, seed } = tools;
      const root = `${directory}/tree`;
      await makeTree(ground.ports.disk, root, leaves);
      const locks = await TablePathLocks.open(ground, { root, slotsPerEpoch });
      const chance = new Chance(seed ^ process.pid);
      const sweep = sweeper(tools);
      try {
        while (!signal.aborted) {
          const leaf = chance.pick(leaves) ?? "";
          await visit(tools, locks, leaf, wayTo(leaf, leaves, chance), signal);
          await sweep();
          if (chance.happens(0.05)) await locks.table.collect();
          // Holders may break their own holds: not every hold ends with a release.
          if (chance.happens(0.02)) await locks.break(leaf);
        }
      } finally {
        await locks.close();
      }
    },

    async find({ ground, directory }) {
      const root = `${directory}/tree`;
      await makeTree(ground.ports.disk, root, leaves);
      // Opening completes the committed changes of dead processes.
      const locks = await TablePathLocks.open(ground, { root, slotsPerEpoch });
      let state: Counter = {};
      for (const leaf of leaves)
        for (const [name, count] of Object.entries(await readCounts(ground.ports.disk, `${root}/${leaf}`)))
          state = { ...state, [name]: (state[name] ?? 0) + count };
      const epochs = (await ground.ports.disk.list(`${ground.layout.directory}/table/epochs`)).length;
      await locks.close();
      return { state, epochs };
    },
  };
}

/** Returns requests for one of the locks that cover a leaf. */
function wayTo(leaf: string, leaves: readonly string[], chance: Chance): LockRequest[] {
  const parent = leaf.slice(0, Math.max(leaf.lastIndexOf("/"), 0));
  const ways: LockRequest[][] = [
    [{ path: leaf }],
    [{ path: leaf, mode: "tree" }],
    [{ path: parent, mode: "tree" }],
    [...new Set([leaf, chance.pick(leaves) ?? leaf])].map((path) => ({ path })),
  ];
  return chance.pick(ways) ?? [];
}

async function visit(
  tools: TortureTools,
  locks: TablePathLocks,
  leaf: string,
  wanted: readonly LockRequest[],
  signal: AbortSignal,
): Promise<void> {
  const { sabotage, report } = tools;
  try {
    const hold = await locks.acquireAll(wanted, { timeoutMs: 10_000, signal });
    report({ kind: "entered" });
    const fromMs = monotonicMs();
    try {
      await (sabotage ? countByCheckThenRename(tools, locks, hold, leaf) : countByRedo(tools, locks, hold, leaf));
      await hold.assertHeld();
      report({ kind: "visited", claims: hold.requests, fence: hold.fence, fromMs, toMs: monotonicMs() });
    } finally {
      report({ kind: "left" });
      await hold.release();
    }
  } catch (error) {
    if (error === signal.reason) return;
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) return report({ kind: "unknown" });
    // The hold was broken, or a queue of sleepers was too slow. This is a valid answer, and no change was made.
    if (!isHoldfastError(error, "LOCK_LOST", "LOCK_TIMEOUT")) throw error;
    tools.life.throwIfOver();
  }
}

async function countByRedo(tools: TortureTools, locks: TablePathLocks, hold: PathHold, leaf: string): Promise<void> {
  const { ground, name, report, directory } = tools;
  const { disk } = ground.ports;
  const counts = addOne(await readCounts(disk, `${directory}/tree/${leaf}`), name);
  const draft = await locks.draft(hold, { isSingle: true });
  await draft.in(leaf, (path) => createUniqueFile(disk, path, Buffer.from(JSON.stringify(counts)), { sync: false }));
  await hold.assertHeld();
  await pauseBeforeWriting(tools);
  await draft.commit();
  report({ kind: "won", count: counts[name] ?? 0, number: hold.fence, of: leaf });
}

/** Known to be wrong: the holder may sleep between the check and the rename, while another process counts. */
async function countByCheckThenRename(
  tools: TortureTools,
  _locks: TablePathLocks,
  hold: PathHold,
  leaf: string,
): Promise<void> {
  const { ground, name, directory, report } = tools;
  const path = `${directory}/tree/${leaf}`;
  const counts = addOne(await readCounts(ground.ports.disk, path), name);
  await hold.assertHeld();
  await pauseBeforeWriting(tools);
  await replace(ground.staging, path, Buffer.from(JSON.stringify(counts)), { sync: true });
  report({ kind: "won", count: counts[name] ?? 0, number: hold.fence, of: leaf });
  await sleep(0);
}

/** Sometimes pauses long enough for the parent to stop this process right here. */
async function pauseBeforeWriting({ report, leaseMs }: TortureTools): Promise<void> {
  if (Math.random() > 0.1) return;
  report({ kind: "vulnerable" });
  await sleep(leaseMs / 10);
}

async function makeTree(disk: Disk, root: string, leaves: readonly string[]): Promise<void> {
  const directories = new Set([root, ...leaves.map((leaf) => `${root}/${leaf}`.replace(/\/[^/]*$/, ""))]);
  for (const directory of directories) await ensureDirectory(disk, directory);
}

async function readCounts(disk: Disk, path: string): Promise<Counter> {
  try {
    return JSON.parse(Buffer.from(await disk.readFile(path, bytesMax)).toString()) as Counter;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return {};
    throw error;
  }
}

/** One clock for all processes of a machine. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
