// Scenarios of lock files that lie beside the locked paths: two or three processes try once each, and no two may be
// inside together.
import type { LockMode } from "../../../src/common.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import {
  actor,
  mustHold,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { insiders } from "./lock-actors.ts";

/** The interface of a protocol of lock files, for one path at a time. */
export interface FileLocks {
  /** Tries once. Returns false if another process holds the lock. */
  acquire(path: string, mode: LockMode): Promise<boolean>;
  /** Returns false if the lock is no longer held. */
  refresh(): Promise<boolean>;
  release(): Promise<void>;
}

export type OpenFileLocks = (context: ActorContext) => FileLocks;

/** Another process may take over a lock that was not refreshed for this long. */
export const expireMs = 300_000;

/** Where a protocol may keep its files, besides the tree `/a` and a temp directory for each actor. */
export const lockRooms = { locks: "/locks", guards: "/guards" } as const;

/** All scenarios use these two paths: a lock on one excludes a lock on the other. */
const tree = "/a";
const file = "/a/b";

async function workInside({ ports, note }: ActorContext): Promise<void> {
  note("enter");
  await ports.disk.canOpen(tree);
  note("leave");
}

function neverTogether(facts: readonly Fact[]): void {
  mustHold(insiders(facts).size <= 1, `${[...insiders(facts).keys()].join(" and ")} are inside together`);
}

export function seedLockScenarios(open: OpenFileLocks): Scenario[] {
  /** Tries once. With `late`, it tries after every lock from before the scenario has expired. */
  const trying = (path: string, mode: LockMode, { late = false } = {}): Actor => ({
    run: async (context) => {
      if (late) await context.ports.clock.sleep(expireMs + 1);
      const locks = open(context);
      if (!(await locks.acquire(path, mode))) return;
      await workInside(context);
      await locks.release();
    },
  });
  /** Holds the lock when the scenario begins. */
  const holding = (
    path: string,
    mode: LockMode,
    run: (context: ActorContext, locks: FileLocks) => Promise<void>,
  ): Actor =>
    actor({
      prepare: async (context) => {
        const locks = open(context);
        mustHold(await locks.acquire(path, mode), "a free path could not be locked");
        return locks;
      },
      run,
    });
  /** Is inside when the scenario begins, and works there. */
  const inside = (mode: LockMode, work: (context: ActorContext, locks: FileLocks) => Promise<unknown>): Actor =>
    holding(mode === "tree" ? tree : file, mode, async (context, locks) => {
      context.note("enter");
      await work(context, locks);
      context.note("leave");
      await locks.release();
    });

  const scenario = (rest: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario => ({
    setup: async ({ disk }) => {
      const temps = Object.keys(rest.actors).map((name) => `/temp/${name}`);
      for (const path of [tree, ...Object.values(lockRooms), "/temp", ...temps]) await disk.mkdir(path);
      await disk.createFile(`${tree}/file`, new Uint8Array(), { sync: false });
    },
    check: neverTogether,
    ...rest,
  });

  return [
    scenario({
      name: "seed: two want a free path",
      about: "Both processes find no lock, and both create one.",
      actors: { ada: trying(file, "exact"), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: a tree and a file in it",
      about: "Each process creates its own lock file, and then checks for the other's.",
      actors: { ada: trying(tree, "tree"), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: two find a lock that has expired",
      about: "The holder is gone, and both processes try to take its lock over.",
      actors: {
        old: holding(file, "exact", async () => undefined),
        ada: trying(file, "exact", { late: true }),
        bob: trying(file, "exact", { late: true }),
      },
    }),
    scenario({
      name: "seed: a newcomer looks during a refresh",
      about: "One process holds a tree and refreshes its lock. The other wants a file in that tree.",
      actors: { ada: inside("tree", (_context, locks) => locks.refresh()), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: an expired holder refreshes beside a taker",
      about: "The holder carries on only if its refresh says that the lock is still its own.",
      actors: {
        ada: holding(file, "exact", async (context, locks) => {
          await context.ports.clock.sleep(expireMs + 1);
          if (await locks.refresh()) await workInside(context);
        }),
        bob: trying(file, "exact", { late: true }),
      },
    }),
    scenario({
      name: "seed: an expired holder lets go beside a taker and a third",
      about: "By the time the holder releases, the lock may belong to the taker.",
      actors: {
        ada: holding(file, "exact", async ({ ports }, locks) => {
          await ports.clock.sleep(expireMs + 1);
          await locks.release();
        }),
        bob: trying(file, "exact", { late: true }),
        cleo: trying(file, "exact", { late: true }),
      },
    }),
    scenario({
      name: "seed: a directory is made while two want its path",
      about: "One process comes when nothing exists, the other when a directory does.",
      actors: {
        ada: trying(file, "exact"),
        bob: trying(file, "exact"),
        mia: { run: ({ ports }) => ports.disk.mkdir(file) },
      },
    }),
    scenario({
      name: "seed: a tree is removed under its lock",
      about: "Names are removed in any order, including the lock's if it lies among them.",
      actors: { ada: inside("tree", ({ ports }) => removeTree(ports.disk, tree)), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: a tree is moved under its lock",
      about: "The move takes along everything in the tree, and the mover is not done yet.",
      actors: {
        ada: inside("tree", async ({ ports }) => {
          await ports.disk.rename(tree, "/moved");
          await ports.disk.canOpen("/moved/file");
        }),
        bob: trying(file, "exact"),
      },
    }),
    scenario({
      name: "seed: a clock that is ahead",
      about: "The clock of one of two machines jumps by more than the time after which a lock expires.",
      clockJumps: { ms: expireMs + 1, count: 1 },
      actors: {
        ada: { ...trying(file, "exact"), machine: "m1" },
        bob: { ...trying(file, "exact"), machine: "m2" },
      },
    }),
  ];
}
