// Known-wrong variants of slots that contain only a change.
import type { Slot, View, WholeSlot } from "../../../src/durable/chain/epoch.ts";
import { RollingChain } from "../../../src/durable/chain/rolling-chain.ts";
import { deltaScenarios } from "../../scenarios/durable/deltas.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Lets a durable append build on slots that a power cut may lose. */
class ChainOfDeltasAlone<T> extends RollingChain<T> {
  protected override slotFor(view: View<T>, made: WholeSlot<T>): Slot<T> {
    return super.slotFor(view, made, { mustStandAlone: false });
  }
}

export const deltaMutants: readonly Mutant[] = [
  {
    name: "a durable append as a delta of slots that are not synced",
    about: "A power cut loses the slot before it, and the delta can no longer be read.",
    scenario: scenarioNamed(
      deltaScenarios({ ChainClass: ChainOfDeltasAlone }),
      "deltas: a durable append behind one that is not, power cuts (weak)",
    ),
    breaks: /is lost/,
  },
];
