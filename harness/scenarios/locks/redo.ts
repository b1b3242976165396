// Scenarios of redo: a counter under a lock, and files that are moved and removed. Committers are paused past their
// lease, die, or lose their lock to a breaker.
import { isHoldfastError } from "../../../src/errors.ts";
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import {
  locker,
  lockScenario,
  neverTogether,
  openLocks,
  orTold,
  patient,
  root,
  shortLeaseMs,
  type LockScenarioOptions,
} from "./lock-actors.ts";

async function readText(disk: Disk, path: string): Promise<string | undefined> {
  try {
    return Buffer.from(await disk.readFile(`${root}/${path}`, 1000)).toString();
  } catch (error) {
    if (isHoldfastError(error, "IO_ERROR") && error.errno === "ENOENT") return undefined;
    throw error;
  }
}

async function put(locks: TablePathLocks, hold: PathHold, disk: Disk, path: string, text: string): Promise<void> {
  const draft = await locks.draft(hold, { isSingle: true });
  await draft.in(path, (staged) => disk.createFile(staged, Buffer.from(text), { sync: true }));
  await draft.commit();
}

/** Reads the counter and commits the next number. */
async function countOnce({ ports, note }: ActorContext, hold: PathHold, locks: TablePathLocks): Promise<void> {
  const count = Number((await readText(ports.disk, "count")) ?? 0) + 1;
  await put(locks, hold, ports.disk, "count", String(count));
  note("counted", count);
}

function counter(options: LockScenarioOptions): Actor {
  return locker(options, async (context, locks) => {
    await orTold(context, async () => {
      const hold = await locks.acquire("count");
      await countOnce(context, hold, locks);
      await hold.release();
    });
  });
}

function noCountTwice(facts: readonly Fact[]): void {
  const counts = valuesOf<number>(facts, "counted");
  mustHold(new Set(counts).size === counts.length, `the count ${counts.at(-1)} was acknowledged twice`);
}

/**
 * The next process that opens the locks completes the committed changes. Then every acknowledged change is present,
 * and no change that was reported as not done.
 */
async function everyCountIsThere(ports: Ports, facts: readonly Fact[], committers: number): Promise<void> {
  await openLocks(ports);
  const found = Number((await readText(ports.disk, "count")) ?? 0);
  const acknowledged = valuesOf<number>(facts, "counted");
  mustHold(
    found >= Math.max(0, ...acknowledged),
    `the count is ${found}, and ${acknowledged.join()} were acknowledged`,
  );
  mustHold(found >= acknowledged.length, `${acknowledged.length} were acknowledged, and the count is ${found}`);
  // A process that was killed, or whose answer is still on its way, knows nothing yet.
  const told = facts.filter(({ what }) => ["counted", "told", "killed"].includes(what)).length;
  const unknown = facts.filter(({ what, value }) => what === "killed" || value === "OUTCOME_UNKNOWN").length;
  if (told < committers) return;
  mustHold(
    found <= acknowledged.length + unknown,
    `the count is ${found}: somebody was told that his commit had not happened, and it has`,
  );
}

/**
 * File systems that keep all names in one order, those that keep the order of each name, and those that keep no order.
 */
const profiles = ["ext4-ordered", "journal", "weak"] as const;

const sleeping = { beatsMax: 4, pauses: { ms: 4 * shortLeaseMs, count: 1, actors: ["ada"] } } as const;

export function redoScenarios(options: LockScenarioOptions = {}): Scenario[] {
  const brief = { ...options, leaseMs: shortLeaseMs };
  const counting = {
    check: noCountTwice,
    audit: (ports: Ports, facts: readonly Fact[]) => everyCountIsThere(ports, facts, 2),
  };
  return [
    lockScenario({
      name: "redo: two counters, one is killed",
      size: "medium",
      about: "Each process counts once. One may be killed at any moment, even between its commit and the rename.",
      ...counting,
      killsMax: 1,
      actors: { ada: counter(options), bob: patient(["count"], options, countOnce) },
    }),
    lockScenario({
      name: "redo: the next holder against a late committer",
      size: "medium",
      about:
        "One process may be paused past its lease at any moment of its commit. The other takes the lock and counts on.",
      ...counting,
      ...sleeping,
      actors: { ada: counter(brief), bob: patient(["count"], options, countOnce) },
    }),
    lockScenario(
      {
        name: "redo: a late committer, rolling and collection",
        size: "large",
        about: "The epoch of the commit ends and is deleted while the committer is paused.",
        ...counting,
        ...sleeping,
        actors: {
          ada: counter({ ...brief, slotsPerEpoch: 1 }),
          bob: patient(["count"], { ...options, slotsPerEpoch: 1 }, async (context, hold, locks) => {
            await countOnce(context, hold, locks);
            await locks.table.sweep();
            await locks.table.collect();
          }),
        },
      },
      { isCollected: true },
    ),
    lockScenario({
      name: "redo: break against commit",
      size: "medium",
      about: "Another process breaks the lock while its holder commits, and counts too.",
      ...counting,
      actors: {
        ada: counter(options),
        bob: locker(options, async (context, locks) => {
          await locks.break("count");
          await orTold(context, async () => {
            const hold = await locks.acquire("count");
            await countOnce(context, hold, locks);
            await hold.release();
          });
        }),
      },
    }),
    lockScenario({
      name: "redo: three that break and count",
      size: "large",
      about: "Two processes count, and a third breaks the holder's lock.",
      ...counting,
      actors: {
        ada: counter(options),
        bob: counter(options),
        cleo: locker(options, async (_context, locks) => void (await locks.break("count"))),
      },
    }),
    moveAgainstWriter(options, brief),
    removeAgainstWriter(options, brief),
    lockScenario({
      name: "redo: a reader without a lock, and power cuts",
      about: "A file that a reader has seen stays under its name, whenever the power is cut.",
      powerCuts: true,
      isPermanent: () => false,
      setup: withTree({}),
      actors: {
        ada: counter(options),
        bob: actor({
          prepare: async () => undefined,
          run: async ({ ports, note }) => {
            const text = await readText(ports.disk, "count");
            if (text !== undefined) note("seen", Number(text));
          },
        }),
      },
      audit: async (ports, facts) => {
        await everyCountIsThere(ports, facts, 1);
        const found = Number((await readText(ports.disk, "count")) ?? 0);
        mustHold(found >= Math.max(0, ...valuesOf<number>(facts, "seen")), "what a reader has seen is gone");
      },
    }),
    ...profiles.flatMap((profile) => [
      lockScenario({
        name: `redo: a counter and power cuts (${profile})`,
        about:
          "The power may be cut at any moment. Acknowledged changes are present afterwards, and none is half done.",
        profile,
        check: noCountTwice,
        audit: (ports, facts) => everyCountIsThere(ports, facts, 1),
        powerCuts: true,
        isPermanent: () => false,
        actors: { ada: counter(options) },
        setup: withTree({}),
      }),
      removalAndPowerCuts(options, profile),
    ]),
    // Not on a disk that splits a rename: no process can control a file that has both names.
    ...(["ext4-ordered", "journal"] as const).flatMap((profile) => [
      moveAndPowerCuts(options, profile),
      twoStepsAndPowerCuts(options, profile),
    ]),
  ];
}

/** One commit replaces a file by another under another name, in two steps. */
function twoStepsAndPowerCuts(options: LockScenarioOptions, profile: CrashProfile): Scenario {
  return lockScenario({
    name: `redo: two steps and power cuts (${profile})`,
    profile,
    about: "One commit removes one file and adds another. Whenever the power is cut, exactly one of the two exists.",
    powerCuts: true,
    isPermanent: () => false,
    setup: withTree({ old: "old" }),
    actors: {
      ada: locker(options, async ({ ports, note }, locks) => {
        const hold = await locks.acquireAll(["old", "new"]);
        const draft = await locks.draft(hold);
        await draft.out("old");
        await draft.in("new", (path) => ports.disk.createFile(path, Buffer.from("new"), { sync: true }));
        await draft.commit();
        note("replaced");
        await hold.release();
      }),
    },
    audit: async (ports, facts) => {
      await openLocks(ports);
      const [old, fresh] = [await readText(ports.disk, "old"), await readText(ports.disk, "new")];
      mustHold((old === "old") !== (fresh === "new"), `old is ${old ?? "gone"} and new is ${fresh ?? "not there"}`);
      if (valuesOf(facts, "replaced").length > 0) mustHold(fresh === "new", "what was acknowledged is gone");
    },
  });
}

function removalAndPowerCuts(options: LockScenarioOptions, profile: CrashProfile): Scenario {
  return lockScenario({
    name: `redo: a removal and power cuts (${profile})`,
    about: "Whenever the power is cut, the directory is whole or gone, and it is gone if the removal was acknowledged.",
    size: profile === "ext4-ordered" ? "small" : "medium",
    profile,
    powerCuts: true,
    isPermanent: () => false,
    setup: async (ports) => {
      await withTree({})(ports);
      await ports.disk.mkdir(`${root}/d`);
      for (const name of ["one", "two"])
        await ports.disk.createFile(`${root}/d/${name}`, Buffer.from(name), { sync: true });
      for (const directory of [`${root}/d`, root]) await ports.disk.syncDirectory(directory);
    },
    actors: {
      ada: locker(options, async ({ note }, locks) => {
        const hold = await locks.acquire("d", { mode: "tree" });
        const draft = await locks.draft(hold, { isSingle: true });
        await draft.out("d");
        await draft.commit();
        note("removed");
        await hold.release();
      }),
    },
    audit: async (ports, facts) => {
      await openLocks(ports);
      const left = [await readText(ports.disk, "d/one"), await readText(ports.disk, "d/two")].join();
      mustHold(left === "," || left === "one,two", `of the directory ${left} is left`);
      if (valuesOf(facts, "removed").length > 0) mustHold(left === ",", "an acknowledged removal came back");
    },
  });
}

function moveAndPowerCuts(options: LockScenarioOptions, profile: CrashProfile): Scenario {
  return lockScenario({
    name: `redo: a move and power cuts (${profile})`,
    profile,
    about: "Whenever the power is cut during a move, the file is in one of the two places.",
    powerCuts: true,
    isPermanent: () => false,
    setup: withTree({ old: "moved" }),
    actors: {
      ada: locker(options, async ({ note }, locks) => {
        const hold = await locks.acquireMove("old", "new");
        const draft = await locks.draft(hold, { isSingle: true });
        await draft.move("old", "new");
        await draft.commit();
        note("moved");
        await hold.release();
      }),
    },
    audit: async (ports, facts) => {
      await openLocks(ports);
      const found = [await readText(ports.disk, "old"), await readText(ports.disk, "new")];
      mustHold(found.filter((text) => text === "moved").length === 1, `it is in ${found.join()}`);
      if (valuesOf(facts, "moved").length > 0) mustHold(found[1] === "moved", "what was acknowledged is gone");
    },
  });
}

/** Sets up a tree with these files, and a ground. */
function withTree(files: Readonly<Record<string, string>>) {
  return async ({ disk }: Ports): Promise<void> => {
    await disk.mkdir("/ground");
    await disk.mkdir(root);
    for (const [path, text] of Object.entries(files))
      await disk.createFile(`${root}/${path}`, Buffer.from(text), { sync: true });
    await disk.syncDirectory(root);
  };
}

/**
 * One process moves a file and may be paused at any moment of the move. The other then writes a new file under the old
 * name.
 */
function moveAgainstWriter(options: LockScenarioOptions, brief: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "redo: a move against the next writer",
    size: "medium",
    about:
      "A mover is paused at any moment of its move. The next holder writes under the old name, and its file stays.",
    ...sleeping,
    setup: withTree({ old: "moved" }),
    actors: {
      ada: locker(brief, async (context, locks) => {
        await orTold(context, async () => {
          const hold = await locks.acquireMove("old", "new");
          context.note("moving", hold.fence);
          const draft = await locks.draft(hold, { isSingle: true });
          await draft.move("old", "new");
          await draft.commit();
          context.note("moved");
          await hold.release();
        });
      }),
      bob: patient([{ path: "old", mode: "tree" }, "new"], options, async ({ ports, note }, hold) => {
        note("found", [await readText(ports.disk, "old"), await readText(ports.disk, "new")]);
        await hold.assertHeld();
        await ports.disk.createFile(`${root}/old.next`, Buffer.from("written"), { sync: false });
        await ports.disk.rename(`${root}/old.next`, `${root}/old`);
        note("written", hold.fence);
      }),
    },
    check: (facts) => {
      neverTogether(facts);
      const [found] = valuesOf<(string | undefined)[]>(facts, "found");
      const places = found?.filter((text) => text === "moved").length ?? 1;
      mustHold(places === 1, `the file was in ${places} places`);
    },
    audit: async (ports, facts) => {
      await openLocks(ports);
      const [old, moved] = [await readText(ports.disk, "old"), await readText(ports.disk, "new")];
      const [moving, writing] = [fenceOf(facts, "moving"), fenceOf(facts, "written")];
      if (writing === undefined) return;
      // A process that wrote after the move used the old name. A mover that resumes late must leave that file alone.
      if (moving === undefined || moving < writing)
        mustHold(old === "written", "what the next holder wrote was moved away");
      else mustHold([old, moved].includes("written"), "what was written before the move is gone");
    },
  });
}

function removeAgainstWriter(options: LockScenarioOptions, brief: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "redo: a removal against the next writer",
    size: "medium",
    about:
      "A remover is paused at any moment of its removal. The file that the next holder writes under that name stays.",
    ...sleeping,
    setup: withTree({ file: "old" }),
    actors: {
      ada: locker(brief, async (context, locks) => {
        await orTold(context, async () => {
          const hold = await locks.acquire("file");
          context.note("removing", hold.fence);
          const draft = await locks.draft(hold, { isSingle: true });
          await draft.out("file");
          await draft.commit();
          context.note("removed");
          await hold.release();
        });
      }),
      bob: patient(["file"], options, async ({ ports, note }, hold, locks) => {
        note("found", await readText(ports.disk, "file"));
        await put(locks, hold, ports.disk, "file", "new");
        note("written", hold.fence);
      }),
    },
    check: neverTogether,
    audit: async (ports, facts) => {
      await openLocks(ports);
      const [removal, writing] = [fenceOf(facts, "removing"), fenceOf(facts, "written")];
      if (writing !== undefined && (removal === undefined || removal < writing))
        mustHold((await readText(ports.disk, "file")) === "new", "what the next holder wrote is gone");
    },
  });
}

function fenceOf(facts: readonly Fact[], what: string): number | undefined {
  return valuesOf<number>(facts, what)[0];
}
