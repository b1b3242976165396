// Small scenarios of holds that change: one that is widened while somebody only waits, and one that is handed over to whoever comes for it.
import type { PathHold } from "../../locks/path-hold.ts";
import { actor, mustHold, type Actor, type ActorContext, type Scenario } from "../explorer/scenario.ts";
import {
  insiders,
  lockScenario,
  openLocks,
  orTold,
  root,
  visit,
  visitor,
  type LockScenarioOptions,
} from "./path-locks.ts";

const tokenFile = `${root}/token`;
const expiresMs = 1_000_000;

async function handOver({ ports }: ActorContext, hold: PathHold): Promise<void> {
  const token = await hold.transfer({ expiresMs });
  // Synced, because that is one step more: it may be killed when others can read it already.
  await ports.disk.createFile(tokenFile, Buffer.from(token), { sync: true });
}

/** Inside for a step at which others may come in: a look at a name that may be there or not. */
async function stay(context: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  await visit(context, hold, async () => {
    await work?.();
    await context.ports.disk.canOpen(`${root}/inside`);
  });
}

/** Takes what was handed over, if it was by then. */
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

export function changingHandsScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return [
    lockScenario({
      name: "hands: upgrade against one who only waits",
      about:
        "One has two holds, widens one of them to a tree, and lets go of the other: only for that did somebody wait who wants a file in that tree too.",
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
      about: "What was handed over once is taken once.",
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
      name: "hands: a receiver, and one who finds the giver dead",
      about: "One hands over and may be killed; another takes it, while a third judges the first.",
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
