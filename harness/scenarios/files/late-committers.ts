// Scenarios of a process that updates a counter file and sleeps past its lease before it commits, while the next one
// counts on.
import { FilesLayout } from "../../../src/files/tree/layout.ts";
import { beginUntilHalt, haltingAtLink } from "../../../src/testing/explorer/halfway.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  audited,
  fileScenario,
  ground,
  once,
  openFiles,
  patiently,
  shortLeaseMs,
  worker,
  type FileScenarioOptions,
} from "./file-actors.ts";

export function lateCommitterScenarios(options: FileScenarioOptions = {}): Scenario[] {
  const increase = (current: Uint8Array | undefined): string =>
    String(Number(Buffer.from(current ?? "0").toString()) + 1);
  const sleeper = { ...options, leaseMs: shortLeaseMs };
  const against = (ada: Actor): Partial<Scenario> & Pick<Scenario, "actors"> => ({
    pauses: { ms: 4 * shortLeaseMs, count: 1, actors: ["ada"] },
    actors: {
      ada,
      bob: worker(options, (context, { files }) =>
        patiently(context, "counted", () => files.update("count", increase)),
      ),
    },
    audit: async (ports, facts) => {
      const { texts } = await audited(ports);
      const acknowledged = valuesOf(facts, "counted").length;
      mustHold(
        Number(texts["count"]) >= acknowledged,
        `${acknowledged} were acknowledged, and it is ${texts["count"]}`,
      );
    },
  });
  const halfway = actor({
    prepare: ({ ports }) =>
      beginUntilHalt(async (halt) => {
        const disk = haltingAtLink(ports.disk, new FilesLayout(ground).changes, halt);
        const { files } = await openFiles({ ...ports, disk }, sleeper);
        await files.update("count", increase);
      }),
    run: async (context, goOn) => void (await once(context, "counted", goOn)),
  });
  return [
    fileScenario(
      {
        name: "files: the next holder against a committer that sleeps",
        size: "medium",
        about: "One process has announced its update, and sleeps past its lease at any moment of the rest.",
        ...against(halfway),
      },
      { count: "0" },
    ),
    fileScenario(
      {
        name: "files: the next holder against a late committer",
        size: "large",
        about:
          "One process sleeps past its lease at any moment of an update. The other completes the committed update, and counts on.",
        beatsMax: 4,
        ...against(
          worker(sleeper, (context, { files }) => once(context, "counted", () => files.update("count", increase))),
        ),
      },
      { count: "0" },
    ),
  ];
}
