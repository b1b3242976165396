// Known-wrong variants of verification.
import { KeyCheck, type BodyFault, type KeyFault } from "../../../src/objects/collect/key-check.ts";
import { verifyScenarios } from "../../scenarios/objects/verifying.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

class HastyCheck extends KeyCheck {
  protected override async confirm(missed: readonly BodyFault[]): Promise<readonly KeyFault[]> {
    return missed;
  }
}

export const verifyMutants: readonly Mutant[] = [
  "verify: a version is removed",
  "verify: a small version is removed",
  "verify: an object is replaced",
].map((name) => ({
  name: `verification that does not look again (${name})`,
  about: "A body that was removed with its version is reported as damage.",
  scenario: scenarioNamed(verifyScenarios(HastyCheck), name),
  breaks: /damage was told where there is none/,
}));
