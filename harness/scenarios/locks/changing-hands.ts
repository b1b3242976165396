// Scenarios of holds that change: upgraded, downgraded, passed on within a process, transferred, or
// closed under their caller.
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
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
  // The sync adds one step, at which the giver may be killed when others can already read the token.
  await ports.disk.createFile(tokenFile, Buffer.from(token), { sync: true });
}

/** Receives the hold if it has been transferred by then. */
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

/** Runs one of several callers of a process. Their fences tell them apart. */
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

/**
 * Two callers are never inside at once. If a caller enters with a hold that was broken before, it was admitted
 * wrongly.
 */
function oneAtATime(facts: readonly Fact[]): void {
  const last = facts.at(-1);
  const isBreaking = facts.filter(({ what }) => what === "breaking" || what === "broken").length === 1;
  // While a process breaks a hold, another caller may enter beside the hold's owner.
  if (last?.what !== "in" || isBreaking) return;
  const inside = new Set<number>();
  for (const { what, value } of facts) {
    if (what === "in") inside.add(value as number);
    else if (what === "out") inside.delete(value as number);
    // The caller inside has lost its hold, and learns it when it checks.
    else if (what === "broken" || what === "killed") inside.clear();
  }
  mustHold(inside.size <= 1, `fences ${[...inside].join(" and ")} are inside together`);
  const fences = valuesOf<number>(facts, "in");
  mustHold(Math.max(...fences) === last.value, `fence ${String(last.value)} came after a higher one`);
}

/** Two callers of one process pass a hold on, while another process waits and a third breaks the hold. */
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
    about:
      "The second caller takes over the request of the first one without an append, unless the hold was broken meanwhile.",
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

/** The caller's scope releases a hold that the caller has already released. */
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
    about: "The first caller's second release must not release the hold that the second caller has by then.",
    actors: { ada: caller(2), bob: caller(1) },
    check: oneAtATime,
  });
}

/** A process downgrades its tree lock and the reply is lost. Another process wants a file in that tree. */
function downgradeInDoubt(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a downgrade whose answer is lost, and another process",
    size: "medium",
    about: "A hold never claims more than the table grants it.",
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

/** A process closes its locks while one of its callers works under them, and another process waits for the lock. */
function closedUnderAHold(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: locks that are closed under a hold, and a waiter",
    about: "The signal tells the caller that works under the hold before the waiter enters.",
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

/** A caller releases without waiting for its commit, and the next caller of its process follows. */
function commitUnderWay(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a commit that its caller does not wait for, and the next caller",
    about:
      "The next caller takes over the request of the first one, whose commit may still be on its way to the table.",
    actors: {
      ada: actor({
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          const hold = await locks.acquire("a");
          const draft = await locks.draft(hold, { isSingle: true });
          await draft.in("a", (path) => ports.disk.createFile(path, Buffer.from("a"), { sync: true }));
          return { locks, hold, draft };
        },
        run: async (context, { locks, hold, draft }) => {
          const commit = orTold(context, async () => {
            await draft.commit();
            context.note("committed");
          });
          const release = async (): Promise<void> => {
            // By now the commit may have reached any of its steps.
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
        "A process with two holds upgrades one to a tree and releases the other. A request for a file in that tree waits only for the other hold.",
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
      about: "A hold that is offered once is received once.",
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
        "The giver offers its hold and may be killed. Another process receives it, while a third judges whether the giver is dead.",
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
