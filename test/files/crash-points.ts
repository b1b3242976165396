// The failure tables as a suite: a process is killed at its disk calls, or they fail, in each operation. The tree has the
// state before it or after it, no content is lost, no change is missing in the log, and no lock is left.
import { describe, expect, it } from "vitest";
import { FolderFiles } from "../../src/files/files.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import type { Tree } from "../../src/files/tree/tree.ts";
import { local, nfs, World, type Fault } from "../sites/world.ts";
import { putFiles, QueueInHand, textsIn, type Texts } from "./file-sites.ts";

const root = "/share/tree";
const staged = "/share/staged";
const leaseMs = 2_000;
const stepsMax = 3_000;

const before: Texts = { "a/x": "x", "a/y": "y", b: "b" };
const incoming: Texts = { x: "new", "deep/z": "z" };
const { "a/x": _x, "a/y": _y, ...withoutA } = before;

interface Trial {
  readonly what: string;
  readonly work: (files: FolderFiles) => Promise<unknown>;
  readonly after: Texts;
  /** Path of the change that the log must have. */
  readonly changed: string;
}

const trials: readonly Trial[] = [
  { what: "writes a file", work: (files) => files.write("b", "new"), after: { ...before, b: "new" }, changed: "b" },
  {
    what: "updates a file",
    work: (files) => files.update("b", (text) => `${Buffer.from(text!).toString()}+`),
    after: { ...before, b: "b+" },
    changed: "b",
  },
  {
    what: "writes below directories that are missing",
    work: (files) => files.write("new/deep/c", "c"),
    after: { ...before, "new/deep/c": "c" },
    changed: "new/deep/c",
  },
  { what: "removes a directory", work: (files) => files.remove("a"), after: withoutA, changed: "a" },
  {
    what: "moves a directory to one that is missing",
    work: (files) => files.move("a", "new/a"),
    after: { ...withoutA, "new/a/x": "x", "new/a/y": "y" },
    changed: "new/a",
  },
  {
    what: "moves a file over another",
    work: (files) => files.move("b", "a/x"),
    after: { "a/x": "b", "a/y": "y" },
    changed: "a/x",
  },
  {
    what: "adds a directory for the first time",
    work: (files) => files.add("new/c", staged),
    after: { ...before, "new/c/x": "new", "new/c/deep/z": "z" },
    changed: "new/c",
  },
  {
    what: "adds a new state of a directory",
    work: (files) => files.add("a", staged),
    after: { ...withoutA, "a/x": "new", "a/deep/z": "z" },
    changed: "a",
  },
];

const volumes = { local, network: nfs };

class Trying {
  readonly world: World;

  constructor(volume: keyof typeof volumes) {
    this.world = new World({ volume: volumes[volume] });
  }

  async prepare(): Promise<FolderFiles> {
    const { disk } = this.world.ports("maker", "m0");
    await this.mustEnd(putFiles(disk, root, before));
    await this.mustEnd(putFiles(disk, staged, incoming));
    return (await this.open("ada")).files;
  }

  /** On a machine of its own: what a process of the same one has in its caches is another trial. */
  async open(process: string): Promise<{ files: FolderFiles; tree: Tree }> {
    const opened = await this.mustEnd(openTree(this.world.ports(process, `m-${process}`), root, { leaseMs }));
    // The ticket is published, and its worker never comes.
    return { files: new FolderFiles(opened, { timeoutMs: 60_000, queue: new QueueInHand() }), tree: opened.tree };
  }

  /** What the next process finds, and can do. */
  async mustBeWhole({ after, changed }: Trial, isDone: boolean | "unknown"): Promise<void> {
    const { files, tree } = await this.open("bob");
    // The lock of the dead process, or of the worker that never comes, ends with its lease.
    const { locks } = tree;
    const hold = await this.mustEnd(locks.acquire("", { mode: "tree", timeoutMs: 60_000 }));
    const { disk } = this.world.ports("watcher", "m1");
    const found = withoutEmpty(await textsIn(disk, root));
    const isAfter = JSON.stringify(sorted(found)) === JSON.stringify(sorted(after));
    if (!isAfter) expect(found).toEqual(before);
    if (isDone !== "unknown") expect({ isAfter }).toEqual({ isAfter: isDone });
    if (isAfter) expect((await tree.changes.readAfter(0)).map(({ path }) => path)).toContain(changed);
    // In the tree, or still where the caller had put it.
    if (changed === "a" || changed === "new/c")
      for (const [name, text] of isAfter ? [] : Object.entries(incoming))
        expect((await textsIn(disk, staged))[name]).toBe(text);
    await this.mustEnd(hold.release());
    expect(await this.mustEnd(locks.list())).toEqual([]);
    await this.mustEnd(files.write(changed === "a" ? "a/x" : "b", "next"));
    await this.mustEnd(files.close());
  }

  async mustEnd<T>(action: Promise<T>): Promise<T> {
    let isOver = false;
    const over = action.finally(() => (isOver = true));
    over.catch(() => undefined);
    for (let step = 0; step < stepsMax && !isOver; step++) await this.world.advance(20);
    if (!isOver) throw new Error("it hangs");
    return await over;
  }
}

async function killAt(volume: keyof typeof volumes, trial: Trial, at: number): Promise<boolean> {
  const trying = new Trying(volume);
  const ada = await trying.prepare();
  let isDone = false;
  await trying.world.killAtCall("ada", at, async () => {
    await trial.work(ada);
    isDone = true;
  });
  await trying.mustBeWhole(trial, isDone || "unknown");
  return isDone;
}

async function failAt(volume: keyof typeof volumes, trial: Trial, fault: Omit<Fault, "process">): Promise<boolean> {
  const trying = new Trying(volume);
  const ada = await trying.prepare();
  let isDone: boolean | "unknown" = true;
  const hasCome = await trying.world.withFault({ process: "ada", ...fault }, async () => {
    try {
      await trying.mustEnd(trial.work(ada));
    } catch (error) {
      // Anything else says that nothing happened.
      isDone = isHoldfastError(error, "OUTCOME_UNKNOWN", "RESOURCE_BUSY") ? "unknown" : false;
    }
  });
  await trying.mustEnd(ada.close().catch(() => undefined));
  await trying.mustBeWhole(trial, isDone);
  return !hasCome;
}

/**
 * Every `stride`th call, and another beginning for each trial: together they meet calls of every kind. Failures at
 * three times fewer.
 */
export function describeCrashPoints({ stride, labels }: { stride: number; labels: readonly string[] }): void {
  describe.each(["local", "network"] as const)("on a %s disk", (volume) => {
    it.each(trials)("a process that $what is killed at any call: all of it happened, or nothing", async (trial) => {
      await eachCall(trial, stride, (at) => killAt(volume, trial, at));
    });

    it.each(labels.flatMap((label) => trials.map((trial) => ({ label, trial, what: trial.what }))))(
      "a process that $what meets $label at any call: it is told what happened",
      async ({ label, trial }) => {
        await eachCall(trial, stride * 3, (at) => failAt(volume, trial, { at, label, lasting: false }));
      },
    );
  });
}

async function eachCall(trial: Trial, stride: number, attempt: (at: number) => Promise<boolean>): Promise<void> {
  const failures: string[] = [];
  let isOver = false;
  for (let at = 1 + (trials.indexOf(trial) % stride); !isOver && failures.length < 3; at += stride)
    try {
      isOver = await attempt(at);
    } catch (error) {
      failures.push(`at call ${at}: ${(error as Error).message}`);
    }
  expect(failures).toEqual([]);
}

function sorted(texts: Texts): [string, string][] {
  return Object.entries(texts).sort(([one], [other]) => (one < other ? -1 : 1));
}

/** A mover that dies may leave directories that it brought in before. */
function withoutEmpty(texts: Texts): Texts {
  return Object.fromEntries(Object.entries(texts).filter(([path]) => !path.endsWith("/")));
}
