// Scenarios of what processes find: documents and outcomes that come in any order, and searches while files change.
import { followChanges } from "../../../files/change-log/follow-changes.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { root, textsBelow } from "./file-actors.ts";
import {
  dispatchAndWork,
  Gate,
  indexer,
  indexScenario,
  mustAgree,
  nextProcess,
  openToWork,
  operator,
} from "./index-actors.ts";
import type { IndexProcess, IndexScenarioOptions } from "./index-world.ts";

const pauseMs = 100;

export interface FollowScenarioOptions extends IndexScenarioOptions {
  readonly follow?: typeof followChanges | undefined;
}

export function indexFollowScenarios(options: FollowScenarioOptions = {}): Scenario[] {
  const quiet = { ...options, isTicketless: true };
  const twoWorkers = (name: string, about: string, change: (process: IndexProcess) => Promise<unknown>): Scenario =>
    indexScenario({
      name,
      size: "medium",
      about,
      begin: ({ place }) => place.changes.append({ kind: "written", path: "a" }),
      files: { a: "one" },
      actors: {
        ada: slowWorker(quiet),
        bob: operator(quiet, "announced", change, (_context, process) => workOn(process, 2)),
        cleo: follower(quiet, 2),
      },
      audit: async (ports) => mustAgree(await nextProcess(ports)),
    });
  return [
    twoWorkers(
      "files index: a worker that is late against a write and its worker",
      "Two workers finish the outcomes of two writes in either order: the newest document counts.",
      ({ files }) => files.write("a", "two"),
    ),
    twoWorkers(
      "files index: a worker that is late against a removal and its worker",
      "Two workers finish the outcomes of a write and of a removal in either order: the file does not come back.",
      ({ files }) => files.remove("a"),
    ),
    indexScenario({
      name: "files index: a follower against a worker",
      about: "A follower that finds the outcome of a change finds its documents.",
      begin: ({ place }) => place.changes.append({ kind: "written", path: "a" }),
      files: { a: "one" },
      actors: {
        ada: indexer(quiet, (_context, process) => workOn(process, 1)),
        cleo: follower(quiet, 1),
      },
    }),
    indexScenario({
      name: "files index: a worker and power cuts",
      about: "The power may be cut at any moment of the work: an outcome that is there has its documents.",
      begin: ({ place }) => place.changes.append({ kind: "written", path: "a" }),
      files: { a: "one" },
      powerCuts: true,
      isPermanent: () => false,
      actors: { ada: indexer(quiet, (_context, process) => workOn(process, 1)) },
      audit: async (ports) => {
        const next = await nextProcess(ports);
        await dispatchAndWork(next);
        await mustAgree(next);
      },
    }),
    searching(quiet),
    following(quiet),
  ];
}

/** One writes and may die, the other is told of the change. */
function following(options: FollowScenarioOptions & { isTicketless: boolean }): Scenario {
  const { follow = followChanges } = options;
  return indexScenario({
    name: "files index: a follower against a writer that dies",
    about: "A follower is told of a change when its hold is over: what it finds then does not change any more.",
    files: { a: "old" },
    killsMax: 1,
    mortal: ["ada"],
    actors: {
      ada: operator(options, "announced", ({ files }) => files.write("a", "new")),
      bob: indexer(options, async ({ note }, { place }) => {
        for await (const { path } of follow(place, { after: 0, closed: new AbortController().signal }))
          return note("found", Buffer.from(await place.disk.readFile(place.pathOf(path), 100)).toString());
      }),
    },
    audit: async (ports, facts) => {
      const { place } = await nextProcess(ports);
      const { a } = await textsBelow(place.disk, root);
      mustHold(valuesOf(facts, "found")[0] === a, `a follower found ${String(valuesOf(facts, "found")[0])}, then ${a}`);
    },
  });
}

/** One removes a file that the other has in its engine. */
function searching(options: IndexScenarioOptions & { isTicketless: boolean }): Scenario {
  return indexScenario({
    name: "files index: a search against a removal in another process",
    about: "A search that began after a removal was acknowledged does not find the file.",
    files: { a: "one" },
    begin: async (process) => {
      await process.place.changes.append({ kind: "written", path: "a" });
      await workOn(process, 1);
    },
    actors: {
      bob: operator(options, "announced", ({ files }) => files.remove("a")),
      cleo: indexer(
        options,
        async ({ note, ports }, { searcher }) => {
          // A step before it: the removal may be over when it asks.
          await ports.disk.canOpen(`${root}/beside`);
          note("asks");
          note("hits", (await searcher.search("one", {})).map(({ path }) => path).join());
        },
        ({ follower: ofCleo }) => ofCleo.refresh(),
      ),
    },
    check: noHitAfterRemoval,
    audit: async (_ports, facts) => mustHold(valuesOf(facts, "hits").length === 1, "the search has no answer"),
  });
}

function noHitAfterRemoval(facts: readonly Fact[]): void {
  const order = facts.map(({ what }) => what);
  const isGone = order.includes("operated") && order.indexOf("operated") < order.indexOf("asks");
  if (isGone) mustHold(!valuesOf(facts, "hits").includes("a"), "a file was found whose removal was acknowledged");
}

/** Has read the file for change 1 before the scenario begins, and goes on. */
function slowWorker(options: IndexScenarioOptions & { isTicketless: boolean }): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const gate = new Gate();
      const extract = async (_path: string, content: { text(): Promise<string> }): Promise<string> => {
        await gate.pass();
        return await content.text();
      };
      const process = await openToWork(ports, { ...options, functions: { extract } });
      const working = workOn(process, 1);
      await gate.reached;
      return { gate, working };
    },
    run: async (_context, { gate, working }) => {
      gate.open();
      await working;
    },
  });
}

async function workOn({ place, worker }: IndexProcess, number: number): Promise<void> {
  await worker.index((await place.changes.find(number)) as Change);
}

/** Follows from any moment on, until all changes are worked on: then it has what the tree has. */
function follower(options: IndexScenarioOptions, changes: number): Actor {
  return indexer(
    options,
    async ({ ports }, process) => {
      await process.follower.refresh();
      while (process.follower.pendingUpTo(changes).length > 0) {
        // Others go on meanwhile: time passes when none of them can.
        await ports.clock.sleep(pauseMs);
        await process.follower.refresh();
      }
      await mustAgree(process);
    },
    ({ follower: ofProcess }) => ofProcess.refresh(),
  );
}
