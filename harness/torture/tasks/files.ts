// The torture of files: counters in a directory that is constantly moved to and fro, and a directory that is added and
// removed beside it.
import { setTimeout as sleep } from "node:timers/promises";
import { ensureDirectory } from "../../../src/durable/publish/directory.ts";
import { createUniqueFile } from "../../../src/durable/publish/unique-file.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { FolderFiles } from "../../../src/files/files.ts";
import { Tree } from "../../../src/files/tree/tree.ts";
import { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import { Chance } from "../../processes/chance.ts";
import { addOne, type Counter } from "../../scenarios/durable/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "../task.ts";

const sides = ["left", "right"] as const;
type Side = (typeof sides)[number];
const pages = ["one", "two", "three"] as const;

export const filesTask: TortureTask = {
  promise: "loses no acknowledged update, and no file of a directory that is moved, added or removed",
  longRuns: [{ seed: 8, seconds: 10, atLeast: { appends: 50, kills: 10, stops: 20, livesOver: 1 } }],
  sabotage: { about: "reads under no lock and then writes", seed: 9 },
  leaseMs: 300,
  dawdling: 0.003,

  async work(tools, signal) {
    const { files, tree } = await openTortured(tools);
    await makeShelf(files, tree);
    const chance = new Chance(tools.seed ^ process.pid);
    const sweep = sweeper(tools);
    try {
      for (let round = 1; !signal.aborted; round++) {
        const side = chance.pick(sides) ?? "left";
        const isMoved = chance.happens(0.1);
        const isTurned = !isMoved && chance.happens(0.1);
        if (isMoved) await attempt(tools, signal, () => move(files, side));
        if (isTurned) await attempt(tools, signal, () => turnOver(tools, files, round));
        await attempt(tools, signal, () => count(tools, files, side, signal));
        await sweep();
      }
    } finally {
      await files.close();
    }
  },

  async find(tools) {
    const { files, tree } = await openTortured(tools);
    await makeShelf(files, tree);
    const wrong: string[] = [];
    const shelves = await Promise.all(sides.map((side) => files.stat(`${side}/shelf`)));
    const found = shelves.flatMap((shelf) => (shelf === undefined ? [] : [shelf.path]));
    if (found.length !== 1) wrong.push(`there are ${found.length} shelves`);
    const state = JSON.parse(await files.readText(`${found[0]}/count`)) as Counter;
    wrong.push(...(await findHalfBook(files)));
    const written = await countWritten(tree);
    const total = totalOf(state);
    if (written < total) wrong.push(`${total} updates are there, and the change log has ${written}`);
    await files.close();
    return { state, epochs: 0, wrong };
  },
};

async function openTortured({ ground, directory }: TortureTools): Promise<{ files: FolderFiles; tree: Tree }> {
  const root = `${directory}/tree`;
  await ensureDirectory(ground.ports.disk, root);
  const locks = await TablePathLocks.open(ground, { root });
  const tree = await Tree.open(locks);
  return { files: new FolderFiles({ tree, close: () => locks.close() }, { timeoutMs: 10_000 }), tree };
}

/** Creates the shelf under a lock on the whole tree if it sees none: a shelf that is being moved may look missing. */
async function makeShelf(files: FolderFiles, tree: Tree): Promise<void> {
  if (await hasShelf(files)) return;
  await using hold = await tree.locks.acquire("", { mode: "tree", timeoutMs: Infinity });
  if (!(await hasShelf(files))) await files.write("left/shelf/count", "{}", { within: hold });
}

async function hasShelf(files: FolderFiles): Promise<boolean> {
  for (const side of sides) if ((await files.stat(`${side}/shelf`)) !== undefined) return true;
  return false;
}

/** An error is a valid answer: either nothing has happened, or the outcome is unknown. */
async function attempt(tools: TortureTools, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error === signal.reason) return;
    const isInDoubt = isHoldfastError(error, "RESOURCE_BUSY") && error.committed === true;
    if (isInDoubt || isHoldfastError(error, "OUTCOME_UNKNOWN")) return tools.report({ kind: "unknown" });
    if (!isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "NO_SUCH_FILE", "FILE_EXISTS")) throw error;
    tools.life.throwIfOver();
  }
}

/**
 * Counts on the side where the shelf is. Every round counts, unless the shelf is moved meanwhile: the time between two
 * counts must not depend on chance.
 */
async function count(tools: TortureTools, files: FolderFiles, side: Side, signal: AbortSignal): Promise<void> {
  if (!(await countOn(tools, files, side, signal))) await countOn(tools, files, otherThan(side), signal);
}

/** Returns false if the shelf is not on this side. */
async function countOn(tools: TortureTools, files: FolderFiles, side: Side, signal: AbortSignal): Promise<boolean> {
  const { name, report, sabotage } = tools;
  const path = `${side}/shelf/count`;
  let counted: Counter | undefined;
  const change = async (current: Uint8Array | undefined): Promise<string | undefined> => {
    if (current === undefined) return undefined;
    report({ kind: "entered" });
    counted = addOne(JSON.parse(Buffer.from(current).toString()) as Counter, name);
    await pauseNowAndThen(tools);
    return JSON.stringify(counted);
  };
  try {
    if (sabotage) {
      const text = await change(await files.read(path));
      await files.write(path, text ?? "", { signal });
    } else await files.update(path, change, { signal });
    if (counted === undefined) return false;
    report({ kind: "won", count: counted[name] ?? 0, number: totalOf(counted) });
    return true;
  } finally {
    if (counted !== undefined) report({ kind: "left" });
  }
}

async function move(files: FolderFiles, side: Side): Promise<void> {
  await files.move(`${side}/shelf`, `${otherThan(side)}/shelf`);
}

/** Adds a book whose pages are all of one edition, and sometimes removes it. */
async function turnOver({ ground, directory, name }: TortureTools, files: FolderFiles, round: number): Promise<void> {
  if (round % 3 === 0) return await files.remove("book");
  const { disk } = ground.ports;
  const edition = `${name}-${process.pid}-${round}`;
  const staged = `${directory}/staged-${edition}`;
  await ensureDirectory(disk, staged);
  for (const page of pages) await createUniqueFile(disk, `${staged}/${page}`, Buffer.from(edition), { sync: false });
  await files.add("book", staged);
}

async function findHalfBook(files: FolderFiles): Promise<string[]> {
  if ((await files.stat("book")) === undefined) return [];
  const texts = await Promise.all(pages.map((page) => files.readText(`book/${page}`).catch(() => "missing")));
  return new Set(texts).size === 1 ? [] : [`a book has pages of ${texts.join(", ")}`];
}

async function countWritten({ changes }: Tree): Promise<number> {
  let written = 0;
  for (let batch = await changes.readAfter(0); batch.length > 0; batch = await changes.readAfter(batch.at(-1)!.number))
    written += batch.filter(({ kind, path }) => kind === "written" && path.endsWith("/shelf/count")).length;
  return written;
}

function otherThan(side: Side): Side {
  return side === "left" ? "right" : "left";
}

function totalOf(counts: Counter): number {
  return Object.values(counts).reduce((sum, each) => sum + each, 0);
}

/** Sometimes pauses long enough for the parent to stop this process right here. */
async function pauseNowAndThen({ report, leaseMs }: TortureTools): Promise<void> {
  if (Math.random() > 0.1) return;
  report({ kind: "vulnerable" });
  await sleep(leaseMs / 10);
}
