// Scenarios of redo on a share whose client gives stale answers, or whose server does not know a handle. Committed
// changes happen, and no others do.
import { createUniqueFile } from "../../../src/durable/publish/unique-file.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { holdfastError, isHoldfastError } from "../../../src/errors.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import type { LockRequest } from "../../../src/locks/path/path-locks.ts";
import type { Redo } from "../../../src/locks/redo/redo.ts";
import type { RedoDraft } from "../../../src/locks/redo/draft.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { lockScenario, openLocks, root, type LockScenarioOptions } from "./lock-actors.ts";
import { share } from "../volumes.ts";

/** The tree before and after the change. */
const before = "a=old b=moved f=old";
const after = "a=old c=moved f=new";

async function stageAll(draft: RedoDraft, disk: Disk): Promise<void> {
  await draft.in("f", (staged) => disk.createFile(staged, Buffer.from("new"), { sync: true }));
  await draft.move("b", "c");
}

/** Lists all files of the tree with their contents. */
async function describeTree(disk: Disk): Promise<string> {
  const files: string[] = [];
  for (const name of [...(await disk.list(root))].sort())
    files.push(`${name}=${Buffer.from(await disk.readFile(`${root}/${name}`, 1000)).toString()}`);
  return files.join(" ");
}

async function makeTree({ disk }: Ports): Promise<void> {
  await disk.mkdir("/ground");
  await disk.mkdir(root);
  for (const file of before.split(" ")) {
    const [name = "", text = ""] = file.split("=");
    await disk.createFile(`${root}/${name}`, Buffer.from(text), { sync: true });
  }
}

/** Holds the locks and has a staged change when the scenario begins. Commits it, and notes the answer. */
function committer(
  wanted: readonly (string | LockRequest)[],
  options: LockScenarioOptions,
  fill: (draft: RedoDraft, disk: Disk) => Promise<unknown>,
): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const locks = await openLocks(ports, options);
      const draft = await locks.draft(await locks.acquireAll(wanted));
      await fill(draft, ports.disk);
      return draft;
    },
    run: (context, draft) => noteOutcome(context, () => draft.commit()),
  });
}

async function noteOutcome({ note }: ActorContext, action: () => Promise<unknown>): Promise<void> {
  try {
    await action();
    note("told", "done");
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    note("told", error.code);
  }
}

/**
 * "Done" means that all steps are done. Every other answer means that none are, except the two that leave it open.
 * Nothing is half done once the locks have been opened again.
 */
async function asTold({ disk, ...ports }: Ports, facts: readonly Fact[]): Promise<void> {
  const told = facts.filter(({ what }) => what === "told").map(({ value }) => value);
  if (told.includes("done")) mustHold((await describeTree(disk)) === after, "it was told done, and part of it is not");
  await openLocks({ disk, ...ports });
  const tree = await describeTree(disk);
  mustHold([before, after].includes(tree), `it is half done: ${tree}`);
  if (told.includes("done")) mustHold(tree === after, `it was told done, and the tree is ${tree}`);
  const isOpen = told.some((each) => ["done", "RESOURCE_BUSY", "OUTCOME_UNKNOWN"].includes(String(each)));
  if (!isOpen) mustHold(tree === before, "it was told that nothing happened, and it has");
}

/** Opens the locks, and knows of another process's commit that is not applied yet. */
async function openUndone(ports: Ports, options: LockScenarioOptions): Promise<{ table: LockTable; redo: Redo }> {
  const { table } = await openLocks(ports, options);
  const [redo] = (await table.read()).state.redos;
  if (redo === undefined) throw new Error("nothing is committed");
  return { table, redo };
}

/** Commits in its preparation, and does nothing more. */
function absentee(
  wanted: readonly string[],
  { TableClass = LockTable, ...options }: LockScenarioOptions,
  fill: (draft: RedoDraft) => Promise<void>,
): Actor {
  class Unable extends TableClass {
    protected override async apply(): Promise<void> {
      throw holdfastError("RESOURCE_BUSY", "It is open elsewhere.", { path: root, blockedBy: [], worthWaiting: true });
    }
  }
  return actor({
    prepare: async ({ ports }) => {
      const locks = await openLocks(ports, { ...options, TableClass: Unable });
      const draft = await locks.draft(await locks.acquireAll(wanted), { isSingle: true });
      await fill(draft);
      await draft.commit().catch(() => undefined);
    },
    run: async () => undefined,
  });
}

/**
 * Two processes complete one commit through handles that may be stale. One of them then writes a new file under the
 * removed name.
 */
function twoCompleters(
  name: string,
  about: string,
  wanted: readonly string[],
  fill: (draft: RedoDraft) => Promise<void>,
  options: LockScenarioOptions,
): Scenario {
  const complete = async ({ note }: ActorContext, { table, redo }: Awaited<ReturnType<typeof openUndone>>) => {
    try {
      await table.complete(redo);
      return true;
    } catch (error) {
      if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
      note("busy");
      return false;
    }
  };
  return lockScenario({
    name,
    size: "medium",
    about,
    volume: share,
    quirks: { staleHandles: true },
    troubles: { staleHandle: 1 },
    setup: makeTree,
    actors: {
      ada: absentee(wanted, options, fill),
      bob: actor({
        machine: "m2",
        prepare: ({ ports }) => openUndone(ports, options),
        run: async (context, undone) => void (await complete(context, undone)),
      }),
      cleo: actor({
        machine: "m3",
        prepare: ({ ports }) => openUndone(ports, options),
        run: async (context, undone) => {
          const { disk } = context.ports;
          if (!(await complete(context, undone))) return;
          const isThere = await disk.canOpen(`${root}/a`);
          context.note("done", isThere);
          await createUniqueFile(disk, `${root}/a`, Buffer.from("next"), { sync: false });
          context.note("written");
        },
      }),
    },
    check: (facts) => {
      const [isThere] = valuesOf<boolean>(facts, "done");
      mustHold(isThere !== true, "it was taken for done, and what is to go is there");
    },
    audit: async ({ disk }, facts) => {
      const tree = (await describeTree(disk)).split(" ");
      if (!facts.some(({ what }) => what === "written")) return;
      mustHold(tree.includes("a=next"), `what the next holder wrote is gone: ${tree.join(" ")}`);
    },
  });
}

export function staleRedoScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return [
    lockScenario({
      name: "redo: handles are stale anywhere in a commit",
      size: "medium",
      about: "Two changes fail with ESTALE, done or not. The committer's answer matches what happened.",
      volume: share,
      quirks: { staleHandles: true },
      troubles: { staleHandle: 2 },
      setup: makeTree,
      actors: { ada: committer([{ path: "", mode: "tree" }], options, stageAll) },
      check: () => undefined,
      audit: asTold,
    }),
    twoCompleters(
      "redo: stale handles, a removal and the next writer",
      "A rename that is repeated after the next holder has written must not move the new file.",
      ["a"],
      (draft) => draft.out("a"),
      options,
    ),
    twoCompleters(
      "redo: stale handles, a move and the next writer",
      "The same for a file that moves to another name.",
      ["a", "c"],
      (draft) => draft.move("a", "c"),
      options,
    ),
    lockScenario({
      name: "redo: a machine that remembers that nothing was there completes a removal",
      about:
        "Another process has created the file and committed its removal. A rename by name reports that the file is absent.",
      volume: share,
      quirks: { staleAbsence: true },
      setup: async ({ disk }) => {
        await disk.mkdir("/ground");
        await disk.mkdir(root);
      },
      meanwhile: ({ disk }) => disk.createFile(`${root}/a`, Buffer.from("old"), { sync: true }),
      actors: {
        ada: { ...absentee(["a"], options, (draft) => draft.out("a")), isFresh: true },
        bob: actor({
          machine: "m2",
          prepare: async ({ ports }) => {
            const locks = await openLocks(ports, options);
            await ports.disk.canOpen(`${root}/a`);
            return locks;
          },
          run: async ({ ports, note }, { table }) => {
            for (const redo of (await table.read()).state.redos) await table.complete(redo);
            note("done", await ports.disk.canOpen(`${root}/a`));
          },
        }),
      },
      check: () => undefined,
      audit: async ({ disk }) => mustHold(!(await disk.canOpen(`${root}/a`)), "it was taken for done, and a is there"),
    }),
    remembered("redo: a directory comes to where another machine has just made one", {
      about: "The committing machine's cache says that nothing was there, and it gets a refusal before the commit.",
      claims: [{ path: "d", mode: "tree" }],
      fill: (draft, disk) => draft.in("d", (staged) => disk.mkdir(staged)),
      meanwhile: makeDirectory,
      told: ["FILE_EXISTS"],
      options,
    }),
    remembered("redo: a removal under an exact lock of what another machine has made a directory", {
      about: "The removing machine's cache says that nothing was there. It still needs a lock on the tree.",
      claims: ["d"],
      fill: (draft) => draft.out("d"),
      meanwhile: makeDirectory,
      told: ["NOT_HELD"],
      options,
    }),
    remembered("redo: a removal of what another machine has just made", {
      about: "The removing machine's cache says that nothing was there. It still removes the directory.",
      claims: ["d"],
      fill: (draft) => draft.out("d"),
      meanwhile: ({ disk }) => disk.createFile(`${root}/d`, Buffer.from("made"), { sync: true }),
      told: ["done"],
      isThereAfter: false,
      options,
    }),
    remembered("redo: a file comes into a directory that another machine has just made", {
      about: "The committing machine's cache says that the directory was missing. The commit still succeeds.",
      claims: ["d/new"],
      fill: (draft, disk) => draft.in("d/new", (staged) => disk.createFile(staged, Buffer.from("new"), { sync: true })),
      meanwhile: makeDirectory,
      told: ["done"],
      options,
    }),
  ];
}

async function makeDirectory({ disk }: Ports): Promise<void> {
  await disk.mkdir(`${root}/d`);
  await disk.createFile(`${root}/d/old`, Buffer.from("old"), { sync: true });
}

interface Remembered {
  readonly about: string;
  readonly claims: readonly (string | LockRequest)[];
  readonly fill: (draft: RedoDraft, disk: Disk) => Promise<unknown>;
  readonly meanwhile: (ports: Ports) => Promise<void>;
  readonly told: readonly string[];
  /** True if `d` exists at the end. */
  readonly isThereAfter?: boolean;
  readonly options: LockScenarioOptions;
}

/** One machine has found `d` absent; then another machine creates it. */
function remembered(name: string, { about, claims, fill, meanwhile, told, options, ...more }: Remembered): Scenario {
  return lockScenario({
    name,
    about,
    volume: share,
    quirks: { staleAbsence: true },
    meanwhile,
    actors: {
      bob: actor({
        machine: "m2",
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          for (const path of ["d", "d/new"]) await ports.disk.findStat(`${root}/${path}`);
          return locks;
        },
        run: async (context, locks) => {
          await noteOutcome(context, async () => {
            const draft = await locks.draft(await locks.acquireAll(claims), { isSingle: true });
            await fill(draft, context.ports.disk);
            await draft.commit();
          });
        },
      }),
    },
    check: (facts) => {
      for (const { what, value } of facts)
        mustHold(what !== "told" || told.includes(String(value)), `it was told ${String(value)}`);
    },
    audit: async (ports) => {
      await openLocks(ports);
      const { isThereAfter = true } = more;
      mustHold(
        (await ports.disk.canOpen(`${root}/d`)) === isThereAfter,
        `d is ${isThereAfter ? "gone" : "still there"}`,
      );
    },
  });
}
