// One room of src as the explorer sees it: the scenarios that prove the room, and the mutants that prove the scenarios.
import type { Scenario } from "../../src/testing/explorer/scenario.ts";
import type { Mutant } from "../../src/testing/bug-bench.ts";

export interface ExploredRoom {
  /** The name of its folder in src. */
  readonly name: string;
  /** One function per file, which makes its scenarios on demand. */
  readonly scenarios: readonly (() => readonly Scenario[])[];
  readonly mutants: readonly (readonly Mutant[])[];
}
