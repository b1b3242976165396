// What the explorer runs of one room of src: the scenarios that prove it, and the mutants that
// prove the scenarios.
import type { Scenario } from "../explorer/scenario.ts";
import type { Mutant } from "../mutants/mutant.ts";

export interface ExploredRoom {
  /** As its folder in src. */
  readonly name: string;
  /** A function for each file: scenarios are made when they are asked for. */
  readonly scenarios: readonly (() => readonly Scenario[])[];
  readonly mutants: readonly (readonly Mutant[])[];
}
