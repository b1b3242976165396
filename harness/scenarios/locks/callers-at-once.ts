// Scenarios of one process whose callers append to the lock table at the same time, and so share a slot.
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import type { RedoDraft } from "../../../src/locks/redo/draft.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { isHoldfastError } from "../../../src/errors.ts";
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
  openLocks,
  orTold,
  patient,
  root,
  stay,
  type LockScenarioOptions,
  type Visit,
} from "./lock-actors.ts";

const paths = ["one", "two"] as const;

/** Keeps the table busy, so that calls made meanwhile share the next slot. */
async function together(locks: TablePathLocks, calls: readonly (() => Promise<void>)[]): Promise<void> {
  await Promise.all([locks.table.append((state) => state), ...calls.map((call) => call())]);
}

/** Acquires both paths in two concurrent calls, holds both at once, and releases them. */
function twoCallers(options: LockScenarioOptions): Actor {
  return locker(options, async (context, locks) => {
    const holds: PathHold[] = [];
    const take = (path: string) => (): Promise<void> =>
      orTold(context, async () => void holds.push(await locks.acquire(path)));
    await together(locks, paths.map(take));
    const claims = holds.flatMap(({ requests }) => requests);
    const { ports, note } = context;
    note("enter", { claims, fence: Math.min(...holds.map(({ fence }) => fence)) } satisfies Visit);
    await ports.disk.canOpen(`${root}/inside`);
    note("leave");
    await Promise.all(holds.map((hold) => hold.release()));
  });
}

interface Prepared {
  readonly locks: TablePathLocks;
  readonly drafts: readonly { readonly path: string; readonly draft: RedoDraft }[];
}

async function stagePut(
  { ports }: ActorContext,
  locks: TablePathLocks,
  path: string,
  text: string,
): Promise<RedoDraft> {
  const draft = await locks.draft(await locks.acquire(path), { isSingle: true });
  await draft.in(path, (staged) => ports.disk.createFile(staged, Buffer.from(text), { sync: true }));
  return draft;
}

/** Has staged a file under a hold of each path before the scenario begins, and commits both at once. */
function twoCommits(options: LockScenarioOptions): Actor {
  return actor<Prepared>({
    prepare: async (context) => {
      const locks = await openLocks(context.ports, options);
      const drafts = [];
      for (const path of paths) drafts.push({ path, draft: await stagePut(context, locks, path, "ada") });
      return { locks, drafts };
    },
    run: async (context, { locks, drafts }) => {
      const commit =
        ({ path, draft }: Prepared["drafts"][number]) =>
        (): Promise<void> =>
          orTold(context, async () => {
            await draft.commit();
            context.note("put", [path, "ada"]);
          });
      await together(locks, drafts.map(commit));
    },
  });
}

/** Each path has its last acknowledged content, unless another process has put a later one. */
async function everyPutIsThere(ports: Ports, facts: readonly Fact[]): Promise<void> {
  await openLocks(ports);
  const last = new Map(valuesOf<[string, string]>(facts, "put"));
  for (const [path, text] of last) {
    const found = await ports.disk.readFile(`${root}/${path}`, 100).catch((error: unknown) => {
      if (isHoldfastError(error, "IO_ERROR")) return undefined;
      throw error;
    });
    mustHold(found !== undefined, `${path} was put by ${text}, and is not there`);
    if (found !== undefined)
      mustHold(Buffer.from(found).toString() === text, `${path} was last put by ${text}, and is ${String(found)}`);
  }
}

export function callersAtOnceScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return [
    lockScenario({
      name: "locks: two callers of a process at once, and another process",
      about: "Requests that share a slot have hold files before other processes can see the requests.",
      size: "medium",
      actors: { ada: twoCallers(options), bob: patient(paths, options, (context, hold) => stay(context, hold)) },
    }),
    lockScenario({
      name: "redo: two commits of a process at once, and one of its holds is broken",
      about: "The commit under the broken hold is refused, and the other commit counts.",
      size: "large",
      check: () => undefined,
      audit: everyPutIsThere,
      actors: {
        ada: twoCommits(options),
        bob: locker(options, async (context, locks) => {
          await locks.break("one");
          await orTold(context, async () => {
            const draft = await stagePut(context, locks, "one", "bob");
            await draft.commit();
            context.note("put", ["one", "bob"]);
          });
        }),
      },
    }),
    lockScenario({
      name: "redo: two commits of a process at once, power cuts",
      about: "Every acknowledged put is present afterwards.",
      size: "large",
      profile: "journal",
      powerCuts: true,
      isPermanent: () => false,
      setup: async ({ disk }) => {
        for (const directory of ["/ground", root]) await disk.mkdir(directory);
        await disk.syncDirectory(root);
      },
      check: () => undefined,
      audit: everyPutIsThere,
      actors: { ada: twoCommits(options) },
    }),
  ];
}
