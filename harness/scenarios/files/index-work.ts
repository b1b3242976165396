// Scenarios of the work on changes: the log worker, tickets that it or an `add` makes, the lock transferred with them,
// and workers that come early, late or never.
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { once, staged } from "./file-actors.ts";
import {
  followAndWork,
  followLog,
  indexer,
  indexScenario,
  mustAgree,
  mustHaveOneTicketAtMost,
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
      name: "files index: the log worker against a process that adds and dies",
      size: "medium",
      about:
        "A process is killed between commit, transfer, publish and checkpoint. There is one ticket, and every file is found.",
      incoming,
      killsMax: 1,
      mortal: ["ada", "bob"],
      actors: {
        ada: operator(options, "committed", ({ files }) => files.add("a", staged)),
        bob: logWorker(options),
        time,
      },
      audit,
    }),
    indexScenario({
      name: "files index: a log worker that dies",
      about: "The log worker is killed at any moment. The next one works on every change that has no outcome yet.",
      begin: async ({ tree }) => {
        for (const path of ["a", "b"]) await tree.changes.append({ kind: "written", path });
      },
      files: { a: "a", b: "b" },
      killsMax: 1,
      actors: { bob: logWorker(options) },
      audit,
    }),
    indexScenario({
      name: "files index: a log worker that comes before the commit",
      size: "medium",
      about: "The worker reads a change that is not committed yet, and the writer may die. The index matches the tree.",
      files: { a: "old" },
      killsMax: 1,
      mortal: ["ada"],
      actors: {
        ada: operator(quiet, "announced", ({ files }) => files.write("a", "new")),
        bob: logWorker(quiet),
      },
      audit: async (ports) => {
        const next = await nextProcess(ports);
        await followAndWork(next);
        await mustAgree(next);
      },
    }),
    indexScenario({
      name: "files index: a worker with the lock of an add against a removal",
      size: "medium",
      about:
        "The worker may be killed while it holds the lock that it received. Added files stay locked until they are indexed.",
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
      size: "medium",
      about: "The change is announced but not committed, and the writer may die. The index matches the tree.",
      files: { a: "old" },
      killsMax: 1,
      mortal: ["ada"],
      actors: {
        ada: operator(quiet, "announced", ({ files }) => files.write("a", "new")),
        bob: indexer(quiet, (_context, process) => handle(process, 1)),
      },
      audit: async (ports) => {
        const next = await nextProcess(ports);
        await followAndWork(next);
        await mustAgree(next);
      },
    }),
  ];
}

function logWorker(options: IndexScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const process = await openToWork(ports, options);
      return { process, tenure: await process.takeLog() };
    },
    run: (_context, { process, tenure }) => followLog(process, tenure),
  });
}

/** Handles this change as if its ticket had been delivered. */
export async function handle({ worker }: IndexProcess, change: number): Promise<void> {
  const { signal } = new AbortController();
  await worker.handle({ meta: { task: "index", change }, signal } as unknown as Delivery);
}

/** A dead worker has lost its lock. */
function lockedUntilIndexed(facts: readonly Fact[]): void {
  const isIndexed = valuesOf<boolean>(facts, "removed").every(Boolean);
  mustHold(isIndexed || valuesOf(facts, "killed").length > 0, "what was added was removed before it was indexed");
}

async function auditWork(ports: Ports, { QueueClass, LogClass }: IndexScenarioOptions): Promise<void> {
  const next = await nextProcess(ports, { QueueClass, LogClass });
  await followAndWork(next);
  await mustAgree(next);
  await mustHaveOneTicketAtMost(next);
  const hold = await next.tree.locks.tryAcquire("a", { mode: "tree" });
  mustHold(hold !== undefined, "the added directory is locked for ever");
}
