// Scenarios of lock files beside what they lock: two or three processes with one try each, of which
// no two may be inside together.
import type { LockMode } from "../../../common.ts";
import { removeTree } from "../../../durable/publish/directory.ts";
import { actor, mustHold, type Actor, type ActorContext, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { insiders } from "./lock-actors.ts";

/** What a protocol of lock files has to offer, for one path at a time. */
export interface FileLocks {
  /** One try. False when another process has it. */
  acquire(path: string, mode: LockMode): Promise<boolean>;
  /** False when it is no longer held. */
  refresh(): Promise<boolean>;
  release(): Promise<void>;
}

export type OpenFileLocks = (context: ActorContext) => FileLocks;

/** A lock that was not refreshed for so long may be taken over. */
export const expireMs = 300_000;

/**
 * Where a protocol may keep what it wants, besides the tree `/a` and a temp directory for each
 * actor.
 */
export const lockRooms = { locks: "/locks", guards: "/guards" } as const;

/** All of the scenarios are about these two: a lock on one of them excludes the other. */
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
  /**
   * Tries once; with `late`, after everything that is there when the scenario begins has expired.
   */
  const trying = (path: string, mode: LockMode, { late = false } = {}): Actor => ({
    run: async (context) => {
      if (late) await context.ports.clock.sleep(expireMs + 1);
      const locks = open(context);
      if (!(await locks.acquire(path, mode))) return;
      await workInside(context);
      await locks.release();
    },
  });
  /** Has the lock when the scenario begins. */
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
  /** Is inside when the scenario begins, and works on there. */
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
      about: "Both find no lock, and both make one.",
      actors: { ada: trying(file, "exact"), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: a tree and a file in it",
      about: "Each makes a lock file of its own, and then looks for that of the other.",
      actors: { ada: trying(tree, "tree"), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: two find a lock that has expired",
      about: "Its holder is gone; each of the two takes it over.",
      actors: {
        old: holding(file, "exact", async () => undefined),
        ada: trying(file, "exact", { late: true }),
        bob: trying(file, "exact", { late: true }),
      },
    }),
    scenario({
      name: "seed: a newcomer looks during a refresh",
      about: "One holds a tree and refreshes its lock; the other wants a file in that tree.",
      actors: { ada: inside("tree", (_context, locks) => locks.refresh()), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: an expired holder refreshes beside a taker",
      about: "It goes on only when its refresh says that the lock is still its own.",
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
      about: "What it lets go of may be the lock of the taker by then.",
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
      about: "One comes when nothing is there, the other when a directory is.",
      actors: {
        ada: trying(file, "exact"),
        bob: trying(file, "exact"),
        mia: { run: ({ ports }) => ports.disk.mkdir(file) },
      },
    }),
    scenario({
      name: "seed: a tree is removed under its lock",
      about: "Names go in any order, also that of the lock if it lies among them.",
      actors: { ada: inside("tree", ({ ports }) => removeTree(ports.disk, tree)), bob: trying(file, "exact") },
    }),
    scenario({
      name: "seed: a tree is moved under its lock",
      about: "What lies in the tree moves with it, and the mover is not done yet.",
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
      about: "The clock of one of two machines jumps by more than it takes a lock to expire.",
      clockJumps: { ms: expireMs + 1, count: 1 },
      actors: {
        ada: { ...trying(file, "exact"), machine: "m1" },
        bob: { ...trying(file, "exact"), machine: "m2" },
      },
    }),
  ];
}
