// Mutants of read models in a rolling upgrade: each gives a program documents of another version,
// or removes its own.
import { Generations, type GenerationsState } from "../../../src/part/generations.ts";
import { eventVersionScenarios } from "../../scenarios/events/versions.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Removes every generation below the current one. */
class KeepsNone extends Generations {
  protected override isOld(number: number, { current }: GenerationsState): boolean {
    return number < (current?.number ?? 0);
  }
}

/** Keeps one older version. */
class KeepsOne extends Generations {
  protected override isOld(number: number, { current, older = [] }: GenerationsState): boolean {
    return number < (current?.number ?? 0) && number !== older[0]?.number;
  }
}

/** Removes the files before the catalog forgets them. */
class DropsFilesFirst extends Generations {
  override async dropOlder(version: number): Promise<void> {
    await super.removeOld();
    await super.dropOlder(version);
  }

  protected override isOld(number: number, { current }: GenerationsState): boolean {
    return number < (current?.number ?? 0);
  }
}

const upgrade = "versions: an older reader beside an upgrade";

export const eventVersionMutants: readonly Mutant[] = [
  {
    name: "the current generation is read, whatever its version",
    about: "After the switch, a program of the older version reads documents of a form that it does not know.",
    scenario: scenarioNamed(eventVersionScenarios({ findReadable: ({ current }) => current }), upgrade),
    breaks: /version 1 reads a document of version 2/,
  },
  {
    name: "the generation of the version before is removed",
    about: "The program of the older version loses the documents that the catalog names.",
    scenario: scenarioNamed(eventVersionScenarios({ GenerationsClass: KeepsNone }), upgrade),
    breaks: /version 1 is named, and its documents are gone/,
  },
  {
    name: "the generation of the second version before is removed",
    about: "Programs that were rolled back lose their documents at the next upgrade.",
    scenario: scenarioNamed(
      eventVersionScenarios({ GenerationsClass: KeepsOne }),
      "versions: an upgrade after a rollback",
    ),
    breaks: /version 1 is named, and its documents are gone/,
  },
  {
    name: "documents are removed before the catalog forgets them",
    about: "The catalog names documents that are gone; after a crash, readers of the older version keep failing.",
    scenario: scenarioNamed(
      eventVersionScenarios({ GenerationsClass: DropsFilesFirst }),
      "versions: documents are dropped under an older reader",
    ),
    breaks: /version 1 is named, and its documents are gone/,
  },
];
