// Scenarios of what processes find: documents and outcomes arrive in any order, and searches run while files change.
import { followChanges } from "../../../src/files/change-log/follow-changes.ts";
import type { Change } from "../../../src/files/model/file-tree.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { root, textsBelow } from "./file-actors.ts";
import {
  followAndWork,
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
  const twoWorkers = (
    described: Pick<Scenario, "name" | "about" | "size">,
    change: (process: IndexProcess) => Promise<unknown>,
  ): Scenario =>
    indexScenario({
      ...described,
      begin: ({ tree }) => tree.changes.append({ kind: "written", path: "a" }),
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
      {
        name: "files index: a worker that is late against a write and its worker",
        size: "medium",
        about: "Two workers finish the outcomes of two writes in either order. The newest document counts.",
      },
      ({ files }) => files.write("a", "two"),
    ),
    twoWorkers(
      {
        name: "files index: a worker that is late against a removal and its worker",
        // Medium because of its time, not its states: each schedule opens three processes.
        size: "medium",
        about: "Two workers finish the outcomes of a write and a removal in either order. The file does not come back.",
      },
      ({ files }) => files.remove("a"),
    ),
    indexScenario({
      name: "files index: a follower against a worker",
      about: "A follower that finds the outcome of a change also finds its documents.",
      begin: ({ tree }) => tree.changes.append({ kind: "written", path: "a" }),
      files: { a: "one" },
      actors: {
        ada: indexer(quiet, (_context, process) => workOn(process, 1)),
        cleo: follower(quiet, 1),
      },
    }),
    indexScenario({
      name: "files index: a worker and power cuts",
      about: "The power may be cut at any moment of the work. Every outcome that exists has its documents.",
      begin: ({ tree }) => tree.changes.append({ kind: "written", path: "a" }),
      files: { a: "one" },
      powerCuts: true,
      isPermanent: () => false,
      actors: { ada: indexer(quiet, (_context, process) => workOn(process, 1)) },
      audit: async (ports) => {
        const next = await nextProcess(ports);
        await followAndWork(next);
        await mustAgree(next);
      },
    }),
    searching(quiet, ({ files }) => files.remove("a"), {
      name: "files index: a search against a removal in another process",
    }),
    searching(quiet, ({ files }) => files.move("a", "b"), {
      name: "files index: a search against a move on another machine",
      machine: "m2",
      quirks: { stalePresence: true, fileHandles: true },
      troubles: { stale: 2 },
    }),
    following(quiet),
  ];
}

/** One process writes and may die, and the other hears of the change. */
function following(options: FollowScenarioOptions & { isTicketless: boolean }): Scenario {
  const { follow = followChanges } = options;
  return indexScenario({
    name: "files index: a follower against a writer that dies",
    about: "A follower hears of a change when its hold has ended. The state that it finds then no longer changes.",
    files: { a: "old" },
    killsMax: 1,
    mortal: ["ada"],
    actors: {
      ada: operator(options, "announced", ({ files }) => files.write("a", "new")),
      bob: indexer(options, async ({ note }, { tree }) => {
        for await (const { path } of follow(tree, { after: 0, closed: new AbortController().signal }))
          return note("found", Buffer.from(await tree.disk.readFile(tree.pathOf(path), 100)).toString());
      }),
    },
    audit: async (ports, facts) => {
      const { tree } = await nextProcess(ports);
      const { a } = await textsBelow(tree.disk, root);
      mustHold(valuesOf(facts, "found")[0] === a, `a follower found ${String(valuesOf(facts, "found")[0])}, then ${a}`);
    },
  });
}

/** One process removes a file that the other has in its engine. */
function searching(
  options: IndexScenarioOptions & { isTicketless: boolean },
  takeAway: (process: IndexProcess) => Promise<unknown>,
  { machine = "m1", ...more }: Pick<Scenario, "name" | "quirks" | "troubles"> & Pick<Actor, "machine">,
): Scenario {
  return indexScenario({
    ...more,
    about: "A search that begins after a removal or move was acknowledged does not find the file at its old path.",
    files: { a: "one" },
    begin: async (process) => {
      await process.tree.changes.append({ kind: "written", path: "a" });
      await workOn(process, 1);
    },
    actors: {
      bob: { ...operator(options, "announced", takeAway), machine },
      cleo: indexer(
        options,
        async ({ note, ports }, { searcher }) => {
          // Takes one step before it asks, so that the removal may be over by then.
          await ports.disk.canOpen(`${root}/beside`);
          note("asks");
          note("hits", (await searcher.search("one", {})).map(({ path }) => path).join());
        },
        // Has found the file, and may remember it.
        async ({ follower: ofCleo, searcher }) => {
          await ofCleo.refresh();
          await searcher.search("one", {});
        },
      ),
    },
    check: noHitAfterRemoval,
    audit: async (_ports, facts) => mustHold(valuesOf(facts, "hits").length === 1, "the search has no answer"),
  });
}

function noHitAfterRemoval(facts: readonly Fact[]): void {
  const order = facts.map(({ what }) => what);
  const isGone = order.includes("operated") && order.indexOf("operated") < order.indexOf("asks");
  if (isGone)
    mustHold(
      !valuesOf(facts, "hits").includes("a"),
      "a file was found where an acknowledged removal or move has left none",
    );
}

/** Has read the file for change 1 before the scenario begins, and then continues. */
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

async function workOn({ tree, worker }: IndexProcess, number: number): Promise<void> {
  await worker.index((await tree.changes.find(number)) as Change);
}

/** Follows from any moment on, until all changes are worked on. Its index then matches the tree. */
function follower(options: IndexScenarioOptions, changes: number): Actor {
  return indexer(
    options,
    async ({ ports }, process) => {
      await process.follower.refresh();
      while (process.follower.pendingUpTo(changes).length > 0) {
        // Others continue meanwhile: time passes only when none of them can.
        await ports.clock.sleep(pauseMs);
        await process.follower.refresh();
      }
      await mustAgree(process);
    },
    ({ follower: ofProcess }) => ofProcess.refresh(),
  );
}
