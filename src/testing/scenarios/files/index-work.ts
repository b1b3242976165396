// Scenarios of the work on changes: tickets that an operation or the dispatcher makes, the lock that goes with them, and
// workers that come early, late or not at all.
import type { Delivery } from "../../../handoff/consume/delivery.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { once, staged } from "./file-actors.ts";
import {
  dispatchAndWork,
  indexer,
  indexScenario,
  mustAgree,
  mustHaveOneTicketEach,
  nextProcess,
  openToWork,
  operator,
  time,
  workOnce,
} from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions } from "./index-world.ts";

const incoming = { x: "new" };

export function indexWorkScenarios(options: IndexScenarioOptions = {}): Scenario[] {
  const audit = (ports: Ports): Promise<void> => auditWork(ports, options);
  const quiet = { ...options, isTicketless: true };
  return [
    indexScenario({
      name: "files index: the dispatcher against a process that adds and dies",
      size: "medium",
      about: "One is killed between commit, transfer, publish and checkpoint: there is one ticket, and all is found.",
      incoming,
      killsMax: 1,
      mortal: ["ada", "bob"],
      actors: {
        ada: operator(options, "committed", ({ files }) => files.add("a", staged)),
        bob: dispatcherOf(options),
        time,
      },
      audit,
    }),
    indexScenario({
      name: "files index: a dispatcher that dies",
      about: "The dispatcher is killed at any moment: the next one makes the tickets that are missing, and no other.",
      begin: async ({ place }) => {
        for (const path of ["a", "b"]) await place.changes.append({ kind: "written", path });
      },
      files: { a: "a", b: "b" },
      killsMax: 1,
      actors: { bob: dispatcherOf(options) },
      audit,
    }),
    indexScenario({
      name: "files index: a worker with the lock of an add against a removal",
      size: "medium",
      about:
        "The worker may be killed with the lock that it has received: what was added is locked until it is indexed.",
      incoming,
      begin: ({ files }) => files.add("a", staged),
      killsMax: 1,
      mortal: ["ada"],
      actors: {
        ada: indexer(options, (_context, process) => workOnce(process)),
        bob: indexer(options, async (context, { files, documents }) => {
          const removed = await once(context, "tried", () => files.remove("a"));
          if (removed) context.note("removed", (await documents.find("a/x", 1)) !== undefined);
        }),
        time,
      },
      check: lockedUntilIndexed,
      audit,
    }),
    indexScenario({
      name: "files index: a worker that comes before the commit",
      about: "Its change is announced and not committed, and the writer may die: what is indexed is what is there.",
      files: { a: "old" },
      killsMax: 1,
      mortal: ["ada"],
      actors: {
        ada: operator(quiet, "announced", ({ files }) => files.write("a", "new")),
        bob: indexer(quiet, (_context, process) => handle(process, 1)),
      },
      audit: async (ports) => {
        const next = await nextProcess(ports);
        await dispatchAndWork(next);
        await mustAgree(next);
      },
    }),
  ];
}

function dispatcherOf(options: IndexScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const process = await openToWork(ports, options);
      return { process, work: await process.takeDispatch() };
    },
    run: async (_context, { process, work }) => void (await process.dispatcher.pass(work)),
  });
}

/** As if the ticket of this change were delivered. */
export async function handle({ worker }: IndexProcess, change: number): Promise<void> {
  const { signal } = new AbortController();
  await worker.handle({ meta: { task: "index", change }, signal } as unknown as Delivery);
}

/** A worker that is dead has lost its lock. */
function lockedUntilIndexed(facts: readonly Fact[]): void {
  const isIndexed = valuesOf<boolean>(facts, "removed").every(Boolean);
  mustHold(isIndexed || valuesOf(facts, "killed").length > 0, "what was added was removed before it was indexed");
}

async function auditWork(ports: Ports, { QueueClass }: IndexScenarioOptions): Promise<void> {
  const next = await nextProcess(ports, { QueueClass });
  await dispatchAndWork(next);
  await mustAgree(next);
  await mustHaveOneTicketEach(next);
  const hold = await (await next.place.locks()).tryAcquire("a", { mode: "tree" });
  mustHold(hold !== undefined, "the added directory is locked for ever");
}
