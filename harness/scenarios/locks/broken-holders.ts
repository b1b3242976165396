// Scenarios of redo: a holder has staged a change, and its lock is broken, or it sleeps past its lease, while it
// commits. The answer it gets must match what happened.
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { holdfastError, isHoldfastError } from "../../../src/errors.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import type { AcquireManyOptions, LockRequest } from "../../../src/locks/path/path-locks.ts";
import type { DraftOptions, RedoDraft } from "../../../src/locks/redo/draft.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { beginUntilHalt, haltingBeforeLink } from "../../../src/testing/explorer/halfway.ts";
import {
  isPermanent,
  locker,
  lockScenario,
  openLocks,
  orTold,
  root,
  shortLeaseMs,
  type LockScenarioOptions,
} from "./lock-actors.ts";

/** The text of a file that an actor will remove, move or replace. */
export const oldText = "old";

async function readText(disk: Disk, path: string): Promise<string | undefined> {
  try {
    return Buffer.from(await disk.readFile(`${root}/${path}`, 1000)).toString();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function stageText(draft: RedoDraft, disk: Disk, path: string, text: string): Promise<void> {
  await draft.in(path, (staged) => disk.createFile(staged, Buffer.from(text), { sync: true }));
}

/** Holds the locks and has a staged change when the scenario begins, then commits it. */
function committer(
  wanted: readonly (string | LockRequest)[],
  options: LockScenarioOptions,
  fill: (draft: RedoDraft, disk: Disk) => Promise<unknown>,
  draftOptions: DraftOptions = { isSingle: true },
): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const locks = await openLocks(ports, options);
      const hold = await locks.acquireAll(wanted);
      const draft = await locks.draft(hold, draftOptions);
      await fill(draft, ports.disk);
      return draft;
    },
    run: async (context, draft) => {
      await orTold(context, async () => {
        await commitOrLeave(draft);
        context.note("committed");
      });
    },
  });
}

async function commitOrLeave(draft: RedoDraft): Promise<void> {
  await draft.commit().catch((error: unknown) => {
    // The commit counts: another process applies it.
    if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
  });
}

/**
 * Options for a process that cannot apply a committed change. Its commit ends with the append, so the explorer tries
 * fewer moments.
 */
function unable({ TableClass = LockTable, ...options }: LockScenarioOptions): LockScenarioOptions {
  class Unable extends TableClass {
    protected override async apply(): Promise<void> {
      throw holdfastError("RESOURCE_BUSY", "It is open elsewhere.", { path: root, blockedBy: [], worthWaiting: true });
    }
  }
  return { ...options, TableClass: Unable };
}

/** Drops all requests, as `break` does for one path, but without its report. */
async function dropAll({ table }: TablePathLocks): Promise<void> {
  await table.drop((await table.read()).state.requests);
}

interface SuccessorOptions extends LockScenarioOptions {
  /** True if the actor first drops all requests. */
  readonly drops?: boolean;
  /** True if the actor begins only when all other actors sleep or are done. */
  readonly isLate?: boolean;
  readonly acquire?: AcquireManyOptions;
}

/** Acquires the locks and works under them. */
function successor(
  wanted: readonly (string | LockRequest)[],
  { drops = false, isLate = false, acquire, ...options }: SuccessorOptions,
  work: (context: ActorContext, hold: PathHold, locks: TablePathLocks) => Promise<void>,
): Actor {
  return locker(options, async (context, locks) => {
    if (isLate) await context.ports.clock.sleep(1);
    if (drops) await dropAll(locks);
    await orTold(context, async () => {
      const hold = await locks.acquireAll(wanted, acquire);
      await work(context, hold, locks);
    });
  });
}

/** Appends its name to the log. */
async function addName({ name, ports, note }: ActorContext, hold: PathHold, locks: TablePathLocks): Promise<void> {
  const before = (await readText(ports.disk, "log")) ?? "";
  const draft = await locks.draft(hold, { isSingle: true });
  await stageText(draft, ports.disk, "log", `${before}${name} `);
  await draft.commit();
  note("committed");
}

/** Ada comes first, commits a log with only this name, and leaves the rest to others. */
function firstName(options: LockScenarioOptions): Actor {
  return committer(["log"], unable(options), (draft, disk) => stageText(draft, disk, "log", "ada "));
}

/** Like `firstName`, but about to link its commit when the scenario begins. */
function halfwayCommitter(options: LockScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) =>
      beginUntilHalt(async (halt) => {
        let isCommitting = false;
        const diskOf = (disk: Disk): Disk => haltingBeforeLink(disk, () => (isCommitting ? halt() : undefined));
        const locks = await openLocks(ports, unable({ ...options, diskOf }));
        const draft = await locks.draft(await locks.acquire("log"), { isSingle: true });
        await stageText(draft, ports.disk, "log", "ada ");
        isCommitting = true;
        await commitOrLeave(draft);
      }),
    run: (context, goOn) => orTold(context, () => goOn().then(() => context.note("committed"))),
  });
}

/** Has judged the first holder dead when the scenario begins, and declares it dead. */
function declarer(options: LockScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => await holderIn((await openLocks(ports, options)).table),
    run: ({ ports }, { layout, id }) => ports.disk.rename(layout.record(id), layout.deathRecord(id)),
  });
}

async function holderIn(table: LockTable) {
  const [request] = (await table.read()).state.requests;
  return { layout: table.ground.layout, id: request?.holder ?? "" };
}

/** The log contains every actor whose commit was acknowledged, and no actor whose commit was refused. */
async function logTells(ports: Ports, facts: readonly Fact[]): Promise<void> {
  await openLocks(ports);
  const log = (await readText(ports.disk, "log"))?.trim().split(" ") ?? [];
  const committed = facts.filter(({ what }) => what === "committed").map(({ actor: name }) => name);
  for (const name of committed)
    mustHold(log.includes(name), `the commit of ${name} was acknowledged, and the log is "${log.join(" ")}"`);
  for (const { actor: name, what, value } of facts)
    if (what === "told" && value === "LOCK_LOST" && !committed.includes(name))
      mustHold(!log.includes(name), `the commit of ${name} was refused, and happened all the same`);
}

async function replaceFile({ ports, note }: ActorContext, path: string): Promise<void> {
  await ports.disk.createFile(`${root}/next`, Buffer.from("written"), { sync: false });
  await ports.disk.rename(`${root}/next`, `${root}/${path}`);
  note("written");
}

function withOldFile(path: string) {
  return async ({ disk }: Ports): Promise<void> => {
    await disk.mkdir("/ground");
    await disk.mkdir(root);
    await disk.createFile(`${root}/${path}`, Buffer.from(oldText), { sync: true });
  };
}

/** A file written under a later hold is not changed by an earlier commit. */
function writtenStays(path: string, otherwise: string) {
  return async (ports: Ports, facts: readonly Fact[]): Promise<void> => {
    await openLocks(ports);
    if (valuesOf(facts, "written").length > 0)
      mustHold((await readText(ports.disk, path)) === "written", `what the next holder wrote ${otherwise}`);
  };
}

export function brokenHolderScenarios(options: LockScenarioOptions = {}): Scenario[] {
  const rolling = { ...options, slotsPerEpoch: 2 };
  const breaker = { ...options, drops: true };
  return [
    lockScenario({
      name: "broken: a committer and a breaker",
      about: "Another process breaks the lock while its holder commits, then appends to the table.",
      check: () => undefined,
      actors: {
        ada: firstName(options),
        bob: locker(options, async (_context, locks) => {
          await dropAll(locks);
          await locks.table.append((list) => list);
        }),
      },
      audit: logTells,
    }),
    lockScenario(
      {
        name: "broken: a committer, rolling and collection",
        size: "medium",
        about: "The epoch of the commit goes by and is deleted before the committer checks it.",
        check: () => undefined,
        actors: {
          ada: firstName(rolling),
          bob: locker(rolling, async (_context, locks) => {
            await dropAll(locks);
            for (let time = 0; time < 2; time++) await locks.table.append((list) => list);
            await locks.table.collect();
          }),
        },
        audit: logTells,
      },
      { isCollected: true },
    ),
    lockScenario(
      {
        name: "broken: a committer, collection and a sweep after it",
        about:
          "The epoch of the commit is deleted, and the committer's staged files are removed, before the committer checks.",
        check: () => undefined,
        actors: {
          ada: halfwayCommitter(rolling),
          bob: actor({
            prepare: async ({ ports }) => {
              const { table } = await openLocks(ports, rolling);
              const holder = await holderIn(table);
              await table.drop((await table.read()).state.requests);
              for (let time = 0; time < 4; time++) await table.append((list) => list);
              await table.collect();
              return { table, ...holder };
            },
            run: async ({ ports }, { table, layout, id }) => {
              await ports.disk.rename(layout.record(id), layout.deathRecord(id));
              await table.sweep();
            },
          }),
        },
        isPermanent: (path) => isPermanent(path, { hearts: true, sleeps: true, isCollected: true }),
        isUnseen: (_operation, path) => path.startsWith("/ground/temp/"),
        audit: logTells,
      },
      { isCollected: true },
    ),
    lockScenario({
      name: "broken: a committer that sleeps, and a waiter",
      size: "medium",
      about: "A holder sleeps past its lease at any moment of its commit. The waiter for its lock commits after it.",
      pauses: { ms: 4 * shortLeaseMs, count: 1, actors: ["ada"] },
      check: () => undefined,
      actors: {
        ada: firstName({ ...options, leaseMs: shortLeaseMs }),
        bob: successor(["log"], { ...options, isLate: true, acquire: { timeoutMs: Infinity } }, addName),
      },
      audit: logTells,
    }),
    lockScenario({
      name: "broken: a commit that is not carried out, a breaker and a third",
      about:
        "A holder has committed but applies nothing. One process breaks its lock and ends, and another acquires the lock.",
      actors: {
        ada: actor({
          prepare: async ({ ports, note }) => {
            const locks = await openLocks(ports, unable({}));
            const draft = await locks.draft(await locks.acquire("log"), { isSingle: true });
            await stageText(draft, ports.disk, "log", "ada ");
            await draft.commit().catch(() => note("committed"));
          },
          run: async () => undefined,
        }),
        bob: locker(options, (_context, locks) => dropAll(locks)),
        cleo: successor(["log"], options, addName),
      },
      check: () => undefined,
      audit: logTells,
    }),
    lockScenario({
      name: "broken: a committer that is declared dead, and a sweep",
      size: "medium",
      about: "One process declares the committer dead at any moment, and another removes the files of dead holders.",
      check: () => undefined,
      actors: {
        ada: firstName(options),
        bob: locker(options, (_context, locks) => locks.table.sweep()),
        cleo: declarer(options),
      },
      // Unlike in other scenarios, a record changes.
      isPermanent: (path) => isPermanent(path, { hearts: true, sleeps: true, isCollected: false }),
      isUnseen: (_operation, path) => path.startsWith("/ground/temp/"),
      audit: logTells,
    }),
    lockScenario({
      name: "broken: a committer whose death is forgotten",
      size: "medium",
      about:
        "Others declared the holder dead while its clocks stood still. It commits while they sweep until no trace of its death is left.",
      check: () => undefined,
      actors: {
        ada: firstName(options),
        bob: locker(options, async ({ ports }, { table }) => {
          const { layout, id } = await holderIn(table);
          await ports.disk.rename(layout.record(id), layout.deathRecord(id));
          await table.sweep();
          await table.sweep();
        }),
      },
      isPermanent: (path) => isPermanent(path, { hearts: true, sleeps: true, isCollected: false }),
      isUnseen: (_operation, path) => path.startsWith("/ground/temp/"),
      audit: logTells,
    }),
    lockScenario({
      name: "broken: a removal and the next writer",
      size: "medium",
      about: "A file that the next holder writes under the name of a file being removed stays there.",
      check: () => undefined,
      setup: withOldFile("file"),
      actors: {
        ada: committer(["file"], options, (draft) => draft.out("file")),
        bob: successor(["file"], breaker, (context) => replaceFile(context, "file")),
      },
      audit: writtenStays("file", "is gone"),
    }),
    lockScenario({
      name: "broken: a write and the next writer",
      about: "An earlier holder's commit does not replace a file that the next holder has written.",
      check: () => undefined,
      setup: withOldFile("file"),
      actors: {
        ada: committer(["file"], options, (draft, disk) => stageText(draft, disk, "file", "committed")),
        bob: successor(["file"], breaker, (context) => replaceFile(context, "file")),
      },
      audit: writtenStays("file", "is gone"),
    }),
    lockScenario({
      name: "broken: a move and the next writer",
      size: "medium",
      about: "A file that the next holder writes under the old name of a file being moved stays there.",
      check: () => undefined,
      setup: withOldFile("file"),
      actors: {
        ada: committer(["file", "moved"], options, (draft) => draft.move("file", "moved")),
        bob: successor(["file"], breaker, (context) => replaceFile(context, "file")),
      },
      audit: writtenStays("file", "was moved away"),
    }),
    lockScenario({
      name: "broken: a replacement in two steps",
      size: "medium",
      about: "One commit removes a file and puts another in its place. The next holder finds one of the two.",
      setup: withOldFile("file"),
      actors: {
        ada: committer(
          ["file"],
          options,
          async (draft, disk) => {
            await draft.out("file");
            await stageText(draft, disk, "file", "new");
          },
          {},
        ),
        bob: successor(["file"], { ...options, drops: true }, async ({ ports, note }) => {
          note("found", await readText(ports.disk, "file"));
        }),
      },
      check: (facts) => {
        for (const text of valuesOf<string | undefined>(facts, "found"))
          mustHold(text !== undefined, "what was committed is lost");
      },
      audit: async (ports, facts) => {
        await openLocks(ports);
        const isCommitted = facts.some(({ what }) => what === "committed");
        const text = await readText(ports.disk, "file");
        mustHold(text === "new" || (text === oldText && !isCommitted), "what was committed is lost");
      },
    }),
    lockScenario({
      name: "broken: a new directory and its remover",
      about: "A directory that the next holder removes does not come back.",
      check: () => undefined,
      actors: {
        ada: committer([{ path: "dir", mode: "tree" }], options, (draft, disk) =>
          draft.in("dir", (staged) => disk.mkdir(staged)),
        ),
        bob: successor([{ path: "dir", mode: "tree" }], breaker, async ({ ports, note }) => {
          await ports.disk.rmdir(`${root}/dir`).catch(() => undefined);
          note("removed");
        }),
      },
      audit: async (ports, facts) => {
        await openLocks(ports);
        if (facts.some(({ what }) => what === "removed"))
          mustHold(!(await ports.disk.canOpen(`${root}/dir`)), "the directory that was removed came back");
      },
    }),
  ];
}
