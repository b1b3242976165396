// Known-wrong variants of an index that forgets.
import { KeyIndex } from "../../../src/objects/listing/key-index.ts";
import type { IndexLine } from "../../../src/objects/listing/index-line.ts";
import { indexForgettingScenarios } from "../../scenarios/objects/index-forgetting.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Lines = AsyncIterable<readonly IndexLine[]>;

/** Drops a key from the index once one of its lives has ended. */
class KeyForgettingIndex extends KeyIndex {
  protected override async *forget(lines: Lines): AsyncGenerator<readonly IndexLine[]> {
    const all: IndexLine[] = [];
    for await (const some of lines) all.push(...some);
    const ended = new Set(all.filter(({ isEnded }) => isEnded).map(({ key }) => key));
    yield all.filter(({ key }) => !ended.has(key));
  }
}

/** Drops announcements without a key, as if no put could be about to create it. */
class AbsenceForgettingIndex extends KeyIndex {
  protected override async *forget(lines: Lines): AsyncGenerator<readonly IndexLine[]> {
    for await (const some of lines) {
      const kept: IndexLine[] = [];
      for (const line of some) if (line.key === "old" || !(await this.isOver(line))) kept.push(line);
      yield kept;
    }
  }
}

/** Leaves due files to the process that named the manifest. */
class TrustingIndex extends KeyIndex {
  protected override async beforeNaming(): Promise<void> {
    // Does nothing, as if the due files were already removed.
  }
}

export const indexForgettingMutants: readonly Mutant[] = [
  {
    name: "index that forgets a key with one of its lives",
    about: "A key that was removed and created again is missing in all listings.",
    scenario: scenarioNamed(
      indexForgettingScenarios({ IndexClass: KeyForgettingIndex }),
      "index: a key that has ended is announced anew while others merge",
    ),
    breaks: /is not in the index/,
  },
  {
    name: "index that forgets what has no key yet",
    about: "A put sleeps between its announcement and its first link; no listing shows its object.",
    scenario: scenarioNamed(
      indexForgettingScenarios({ IndexClass: AbsenceForgettingIndex }),
      "index: a put to a new key while others merge",
    ),
    breaks: /no listing shows it|is not in the index/,
  },
  {
    name: "index whose merger leaves what is due to another",
    about: "A listing finds the `open` file of its manifest although the announcements are gone.",
    scenario: scenarioNamed(
      indexForgettingScenarios({ IndexClass: TrustingIndex }),
      "index: a listing while mergers are killed",
    ),
    breaks: /a listing without the key/,
  },
];
