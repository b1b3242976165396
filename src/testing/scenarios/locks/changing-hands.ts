// Scenarios of holds that change: upgraded, downgraded, passed on within a process, transferred, or
// closed under their caller.
import type { PathHold } from "../../../locks/path/path-hold.ts";
import type { TablePathLocks } from "../../../locks/path/table-path-locks.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../explorer/scenario.ts";
import { familyScenarios } from "./families.ts";
import {
  insiders,
  lockScenario,
  openLocks,
  orTold,
  root,
  stay,
  visitor,
  type LockScenarioOptions,
} from "./lock-actors.ts";

const tokenFile = `${root}/token`;
const expiresMs = 1_000_000;

async function handOver({ ports }: ActorContext, hold: PathHold): Promise<void> {
  const token = await hold.transfer({ expiresMs });
  // Synced, because that is one step more: the giver may be killed when others can already read the
  // token.
  await ports.disk.createFile(tokenFile, Buffer.from(token), { sync: true });
}

/** Receives the hold, if it was transferred by then. */
function receiver(options: LockScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLocks(ports, options),
    run: async (context, locks) => {
      await orTold(context, async () => {
        const token = Buffer.from(await context.ports.disk.readFile(tokenFile, 1000)).toString();
        await stay(context, await locks.receive(token));
      });
    },
  });
}

/** One of several callers of a process. Their fences tell them apart. */
async function callOnce(context: ActorContext, locks: TablePathLocks): Promise<PathHold | undefined> {
  let hold: PathHold | undefined;
  await orTold(context, async () => {
    hold = await locks.acquire("a", { timeoutMs: Infinity });
    context.note("in", hold.fence);
    await context.ports.disk.canOpen(`${root}/inside`);
    context.note("out", hold.fence);
    await hold.release();
  });
  return hold;
}

/** Never two at once. A caller that got a hold that was broken before was let in wrongly. */
function oneAtATime(facts: readonly Fact[]): void {
  const last = facts.at(-1);
  const isBreaking = facts.filter(({ what }) => what === "breaking" || what === "broken").length === 1;
  // While a hold is being broken, another caller may come in beside its owner.
  if (last?.what !== "in" || isBreaking) return;
  const inside = new Set<number>();
  for (const { what, value } of facts) {
    if (what === "in") inside.add(value as number);
    else if (what === "out") inside.delete(value as number);
    // The caller inside has lost its hold, and learns so when it asks.
    else if (what === "broken" || what === "killed") inside.clear();
  }
  mustHold(inside.size <= 1, `fences ${[...inside].join(" and ")} are inside together`);
  const fences = valuesOf<number>(facts, "in");
  mustHold(Math.max(...fences) === last.value, `fence ${String(last.value)} came after a higher one`);
}

/** Two callers of one process pass a hold on, while another process waits and a third breaks it. */
function passingOn(options: LockScenarioOptions): Scenario {
  const caller = (times: number): Actor =>
    actor({
      prepare: ({ ports }) => openLocks(ports, options),
      run: async (context, locks) => {
        await Promise.all(Array.from({ length: times }, () => callOnce(context, locks)));
      },
    });
  return lockScenario({
    name: "hands: two callers of one process, another process, and a breaker",
    size: "medium",
    about: "The second caller gets the request of the first one without an append, unless it was broken meanwhile.",
    actors: {
      ada: caller(2),
      bob: caller(1),
      cleo: actor({
        prepare: ({ ports }) => openLocks(ports, options),
        run: async ({ note }, locks) => {
          note("breaking");
          await locks.break("a");
          note("broken");
        },
      }),
    },
    check: oneAtATime,
  });
}

/** The scope of a caller releases once more what the caller has released. */
function releasingTwice(options: LockScenarioOptions): Scenario {
  const caller = (times: number): Actor =>
    actor({
      prepare: ({ ports }) => openLocks(ports, options),
      run: async (context, locks) => {
        await Promise.all(
          Array.from({ length: times }, async () => {
            const hold = await callOnce(context, locks);
            await hold?.release();
          }),
        );
      },
    });
  return lockScenario({
    name: "hands: two callers of one process that release twice, and another process",
    about: "What the first caller releases once more is the second one's by then.",
    actors: { ada: caller(2), bob: caller(1) },
    check: oneAtATime,
  });
}

/** A process downgrades its tree lock and the answer is lost; another wants a file in that tree. */
function downgradeInDoubt(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a downgrade whose answer is lost, and another process",
    size: "medium",
    about: "A hold says that it has what the table says, or less.",
    errors: { errnos: ["EIO"], operations: ["can open"] },
    troubles: { error: 2 },
    actors: {
      ada: actor({
        prepare: async ({ ports }) => (await openLocks(ports, options)).acquire("a", { mode: "tree" }),
        run: async (context, hold) => {
          await orTold(context, () => hold.downgrade("exact"));
          await orTold(context, async () => {
            await hold.assertHeld();
            await stay(context, hold);
          });
          await orTold(context, () => hold.release());
        },
      }),
      bob: visitor(["a/b"], options),
    },
  });
}

/**
 * A process that closes its locks while a caller works under one of them, and another process that
 * waits for it.
 */
function closedUnderAHold(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: locks that are closed under a hold, and a waiter",
    about: "The caller that works under the hold is told by its signal before the waiter comes in.",
    actors: {
      ada: actor({
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          return { locks, hold: await locks.acquire("a") };
        },
        run: async (context, { locks, hold }) => {
          context.note("enter", { claims: hold.requests, fence: hold.fence });
          hold.signal.addEventListener("abort", () => context.note("leave"));
          await locks.close();
        },
      }),
      bob: visitor(["a"], { ...options, acquire: { timeoutMs: Infinity } }),
    },
  });
}

/** A caller that releases without waiting for its commit, and the next one of its process. */
function commitUnderWay(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a commit that its caller does not wait for, and the next caller",
    about: "The next caller gets the request of the first one, whose commit may be on its way to the table.",
    actors: {
      ada: actor({
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          const hold = await locks.acquire("a");
          const draft = await locks.draft(hold);
          await draft.in("a", (path) => ports.disk.createFile(path, Buffer.from("a"), { sync: true }));
          return { locks, hold, draft };
        },
        run: async (context, { locks, hold, draft }) => {
          const commit = orTold(context, async () => {
            await draft.commit();
            context.note("committed");
          });
          const release = async (): Promise<void> => {
            // Until then the commit may have come to any of its steps.
            await context.ports.disk.canOpen(`${root}/inside`);
            await hold.release();
          };
          await Promise.all([commit, callOnce(context, locks), release()]);
        },
      }),
    },
    check: (facts) => {
      const order = facts.map(({ what }) => what);
      const isLate = order.includes("in") && order.indexOf("committed") > order.indexOf("in");
      mustHold(!isLate, "what was committed under one hold happened under the next");
    },
  });
}

export function changingHandsScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return [
    passingOn(options),
    releasingTwice(options),
    commitUnderWay(options),
    downgradeInDoubt(options),
    closedUnderAHold(options),
    ...familyScenarios(options),
    lockScenario({
      name: "hands: upgrade against a request that only waits",
      about:
        "A process with two holds upgrades one to a tree and releases the other. A request for a file in that tree waits only for the other.",
      actors: {
        ada: actor({
          prepare: async ({ ports }) => {
            const locks = await openLocks(ports, options);
            return { hold: await locks.acquire("a"), other: await locks.acquire("c") };
          },
          run: async (context, { hold, other }) => {
            await orTold(context, async () => {
              await hold.upgrade("tree");
              await stay(context, hold, () => other.release());
            });
            await other.release();
            await hold.release();
          },
        }),
        bob: visitor(["a/b", "c"], { ...options, acquire: { timeoutMs: Infinity } }),
      },
      check: (facts) => {
        const names = [...insiders(facts).keys()];
        mustHold(names.length <= 1, `${names.join(" and ")} are inside together`);
      },
    }),
    lockScenario({
      name: "hands: two receivers of one token",
      about: "A hold that was offered once is received once.",
      actors: {
        ada: actor({
          prepare: async (context) => handOver(context, await (await openLocks(context.ports, options)).acquire("a")),
          run: async () => undefined,
        }),
        bob: receiver(options),
        cleo: receiver(options),
      },
      check: (facts) => {
        const entered = facts.filter(({ what }) => what === "enter").map(({ actor: name }) => name);
        mustHold(entered.length <= 1, `${entered.join(" and ")} have received one hold`);
      },
    }),
    lockScenario({
      name: "hands: a receiver, and a process that finds the giver dead",
      size: "medium",
      about:
        "The giver offers its hold and may be killed; another process receives it, while a third judges the giver.",
      killsMax: 1,
      mortal: ["ada"],
      actors: {
        ada: actor({
          prepare: async ({ ports }) => (await openLocks(ports, options)).acquire("a"),
          run: (context, hold) => orTold(context, () => handOver(context, hold)),
        }),
        bob: receiver(options),
        cleo: visitor(["a"], options),
      },
    }),
  ];
}
