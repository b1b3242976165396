// Scenarios of the operations on a tree: two at a time on the same paths, processes that die or sleep in the middle,
// and power cuts. No update is lost, no removed file comes back, and the log misses no change.
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, valuesOf, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { audited, fileScenario, once, staged, textsBelow, worker, type FileScenarioOptions } from "./file-actors.ts";

const incoming = { x: "new" };

export function fileScenarios(options: FileScenarioOptions = {}): Scenario[] {
  return [...dyingScenarios(options), ...racingScenarios(options)];
}

function isDone(facts: readonly Fact[], what: string): boolean {
  return valuesOf(facts, what).length > 0;
}

/** Scenarios of one process, which may die or lose its power at any moment. */
function dyingScenarios(options: FileScenarioOptions): Scenario[] {
  const trouble = { killsMax: 1 } as const;
  return [
    fileScenario(
      {
        name: "files: a writer that dies",
        about:
          "A writer is killed at any moment. The change log has its change, and the tree has every acknowledged write.",
        ...trouble,
        actors: {
          ada: worker(options, (context, { files }) => once(context, "wrote", () => files.write("a/x", "new"))),
        },
        audit: async (ports, facts) => {
          const { texts, changes } = await audited(ports);
          if (isDone(facts, "wrote")) mustHold(texts["a/x"] === "new", "an acknowledged write is lost");
          if (texts["a/x"] === "new")
            mustHold(
              changes.some(({ path }) => path === "a/x"),
              "a change is missing in the log",
            );
        },
      },
      { "a/x": "old" },
    ),
    fileScenario(
      {
        name: "files: a remover that dies",
        about: "A remover is killed at any moment. The directory is whole or gone, and the log has every removal.",
        ...trouble,
        actors: { ada: worker(options, (context, { files }) => once(context, "removed", () => files.remove("a"))) },
        audit: async (ports, facts) => {
          const { texts, changes } = await audited(ports);
          const left = Object.keys(texts).length;
          mustHold(left === 0 || left === 2, `${left} of two files are left`);
          if (isDone(facts, "removed")) mustHold(left === 0, "an acknowledged removal came back");
          if (left === 0)
            mustHold(
              changes.some(({ kind }) => kind === "removed"),
              "a change is missing in the log",
            );
        },
      },
      { "a/x": "x", "a/y": "y" },
    ),
    fileScenario(
      {
        name: "files: a mover that dies",
        about: "A mover is killed at any moment. The directory is whole in one of the two places.",
        ...trouble,
        actors: {
          ada: worker(options, (context, { files }) => once(context, "moved", () => files.move("a", "new/a"))),
        },
        audit: async (ports, facts) => {
          const { texts, changes } = await audited(ports);
          const places = [texts["a/x"], texts["new/a/x"]].filter((text) => text === "x").length;
          mustHold(places === 1, `the file is in ${places} places`);
          if (isDone(facts, "moved")) mustHold(texts["new/a/x"] === "x", "an acknowledged move is lost");
          if (texts["new/a/x"] === "x")
            mustHold(
              changes.some(({ kind }) => kind === "moved"),
              "a change is missing in the log",
            );
        },
      },
      { "a/x": "x" },
    ),
    fileScenario(
      {
        name: "files: an adder that dies",
        about: "An adder is killed at any moment. The tree has the old state or the new one, and no content is lost.",
        ...trouble,
        actors: { ada: worker(options, (context, { files }) => once(context, "added", () => files.add("a", staged))) },
        audit: (ports, facts) => wholeAdd(ports, facts),
      },
      { "a/x": "old", "a/y": "old" },
      incoming,
    ),
    fileScenario(
      {
        name: "files: an adder and power cuts",
        about:
          "The power may be cut at any moment of an add. The tree has the old state or the new one, and no content is lost.",
        powerCuts: true,
        isPermanent: () => false,
        actors: { ada: worker(options, (context, { files }) => once(context, "added", () => files.add("a", staged))) },
        audit: (ports, facts) => wholeAdd(ports, facts),
      },
      { "a/x": "old", "a/y": "old" },
      incoming,
    ),
  ];
}

async function wholeAdd(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const { texts, changes } = await audited(ports);
  const left = await textsBelow(ports.disk, staged);
  const isNew = texts["a/x"] === "new";
  const seen = JSON.stringify(texts);
  mustHold(seen === '{"a/x":"new"}' || seen === '{"a/x":"old","a/y":"old"}', `the tree has ${seen}`);
  mustHold(isNew || left["x"] === "new", "the staged content is lost");
  if (isDone(facts, "added")) mustHold(isNew, "an acknowledged add is lost");
  if (isNew)
    mustHold(
      changes.some(({ path }) => path === "a"),
      "a change is missing in the log",
    );
}

/** Scenarios of two processes on the same paths. */
function racingScenarios(options: FileScenarioOptions): Scenario[] {
  return [
    fileScenario(
      {
        name: "files: a removal against an add",
        about: "One process removes a directory while another adds a new state of it. The order of the locks decides.",
        actors: {
          ada: worker(options, (context, { files }) => once(context, "removed", () => files.remove("a"))),
          bob: worker(options, (context, { files }) => once(context, "added", () => files.add("a", staged))),
        },
        audit: async (ports, facts) => {
          const { texts } = await audited(ports);
          const seen = JSON.stringify(texts);
          const [removed, added] = [isDone(facts, "removed"), isDone(facts, "added")];
          mustHold(["{}", '{"a/x":"new"}', '{"a/y":"old"}'].includes(seen), `the tree has ${seen}`);
          if (removed || added) mustHold(texts["a/y"] === undefined, "what was removed came back");
          if (added && !removed) mustHold(texts["a/x"] === "new", "an acknowledged add is lost");
        },
      },
      { "a/y": "old" },
      incoming,
    ),
    fileScenario(
      {
        name: "files: a move against a write below it",
        about: "One process moves a directory while another writes into it. Both succeed, in one order.",
        actors: {
          ada: worker(options, (context, { files }) => once(context, "moved", () => files.move("a", "b"))),
          bob: worker(options, (context, { files }) => once(context, "wrote", () => files.write("a/x", "new"))),
        },
        audit: async (ports, facts) => {
          const { texts } = await audited(ports);
          const found = Object.values(texts);
          mustHold(found.filter((text) => text === "y").length === 1, "the other file is not in one place");
          if (isDone(facts, "wrote")) mustHold(found.includes("new"), "an acknowledged write is lost");
          if (isDone(facts, "moved")) mustHold(texts["b/y"] === "y", "an acknowledged move is lost");
        },
      },
      { "a/y": "y" },
    ),
    fileScenario(
      {
        name: "files: a move against a move",
        about:
          "Two processes move the same file to two places. It ends in one of them, and the other process gets an error.",
        actors: {
          ada: worker(options, (context, { files }) => once(context, "moved", () => files.move("a", "b"))),
          bob: worker(options, (context, { files }) => once(context, "moved", () => files.move("a", "c"))),
        },
        check: (facts) => mustHold(valuesOf(facts, "moved").length <= 1, "both were told that they moved it"),
        audit: async (ports, facts) => {
          const { texts } = await audited(ports);
          mustHold(Object.values(texts).join() === "x", `the tree has ${JSON.stringify(texts)}`);
          if (isDone(facts, "moved")) mustHold(texts["a"] === undefined, "an acknowledged move is lost");
        },
      },
      { a: "x" },
    ),
    fileScenario(
      {
        name: "files: a removal of a file that becomes a directory",
        size: "medium",
        about:
          "Between the check and the lock another process creates a directory there. The operation chooses its lock again.",
        actors: {
          ada: worker(options, (context, { files }) => once(context, "removed", () => files.remove("a"))),
          bob: worker(options, async (context, { files }) => {
            if (await once(context, "gone", () => files.remove("a")))
              await once(context, "wrote", () => files.write("a/x", "new"));
          }),
        },
        audit: async (ports, facts) => {
          const { texts } = await audited(ports);
          if (isDone(facts, "wrote") && !isDone(facts, "removed"))
            mustHold(texts["a/x"] === "new", "an acknowledged write is lost");
        },
      },
      { a: "file" },
    ),
    fileScenario({
      name: "files: two writers below a directory that is missing",
      about: "Both processes find that the directory is missing. One adds it, and the other writes into it.",
      actors: {
        ada: worker(options, (context, { files }) => once(context, "wrote", () => files.write("d/a", "a"))),
        bob: worker(options, (context, { files }) => once(context, "wrote", () => files.write("d/b", "b"))),
      },
      audit: async (ports, facts) => {
        const { texts } = await audited(ports);
        const done = facts.filter(({ what }) => what === "wrote").map(({ actor }) => (actor === "ada" ? "d/a" : "d/b"));
        for (const path of done) mustHold(texts[path] !== undefined, "an acknowledged write is lost");
      },
    }),
  ];
}
