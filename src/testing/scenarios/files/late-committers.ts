// Scenarios of a process that counts in a file and sleeps past its lease before it commits, while the next one counts on.
import { actor, beginUntilHalt, mustHold, valuesOf, type Actor, type Scenario } from "../../explorer/scenario.ts";
import {
  audited,
  fileScenario,
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
    prepare: async ({ ports }) => {
      const { files } = await openFiles(ports, sleeper);
      return await beginUntilHalt((halt) =>
        files.update("count", async (current) => {
          await halt();
          return increase(current);
        }),
      );
    },
    run: async (context, goOn) => void (await once(context, "counted", goOn)),
  });
  return [
    fileScenario(
      {
        name: "files: the next holder against a committer that sleeps",
        size: "medium",
        about: "One has read what it is to change, and sleeps past its lease anywhere in what is left of its update.",
        ...against(halfway),
      },
      { count: "0" },
    ),
    fileScenario(
      {
        name: "files: the next holder against a late committer",
        size: "large",
        about: "One sleeps past its lease anywhere in an update; the other completes what it committed, and counts on.",
        beatsMax: 4,
        ...against(
          worker(sleeper, (context, { files }) => once(context, "counted", () => files.update("count", increase))),
        ),
      },
      { count: "0" },
    ),
  ];
}
