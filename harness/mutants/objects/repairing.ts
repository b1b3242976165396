// Known-wrong variants of a repair that sets a damaged entry aside.
import { SlotRepair } from "../../../src/objects/collect/set-aside.ts";
import type { DamagedSlot } from "../../../src/objects/model/damaged-entry.ts";
import { repairScenarios } from "../../scenarios/objects/repairing.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

class RemovingFirst extends SlotRepair {
  override async setAside(key: string, slots: readonly DamagedSlot[]): Promise<readonly DamagedSlot[]> {
    const removed = await this.remove(key, slots);
    for (const { path } of slots) await this.copy(path);
    await this.settleCopies();
    return removed;
  }
}

class WithoutSync extends SlotRepair {
  protected override async settleCopies(): Promise<void> {
    // A power cut may lose the name of the copy.
  }
}

export const repairMutants: readonly Mutant[] = [
  {
    name: "repair that removes an entry before it copies it",
    about: "If the process dies in between, there is no copy; otherwise it copies the stub.",
    scenario: scenarioNamed(repairScenarios(RemovingFirst), "repair: a damaged entry beside a put"),
    breaks: /no copy of it is there/,
  },
  {
    name: "repair that does not wait for its copy to be durable",
    about: "A power cut keeps the removal and loses the copy.",
    scenario: scenarioNamed(repairScenarios(WithoutSync), "repair: a damaged entry, power cuts"),
    breaks: /no copy of it is there/,
  },
];
