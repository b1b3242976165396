// Known-wrong answers to a committer that was overtaken: each says LOCK_LOST for a commit that
// happened, and the caller repeats it.
import type { RollingEntry } from "../../../durable/chain/rolling-chain.ts";
import { LockTable } from "../../../locks/table/lock-table.ts";
import type { TableState } from "../../../locks/table/request.ts";
import { brokenHolderScenarios } from "../../scenarios/locks/broken-holders.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * A1: a commit counts if the newest table has it. By then others may have completed it and left it
 * out.
 */
class CommitFoundInTheHead extends LockTable {
  override async append(...args: Parameters<LockTable["append"]>): Promise<RollingEntry<TableState> | undefined> {
    const entry = await super.append(...args);
    const id = args[1]?.id;
    if (entry === undefined || id === undefined) return entry;
    const { redos } = (await this.read()).state;
    return redos.some((redo) => redo.id === id) ? entry : undefined;
  }
}

/** A2m: a commit whose epoch was collected has failed. */
class CollectedMeansLost extends LockTable {
  protected override async counts(): Promise<boolean> {
    return false;
  }
}

const refused = /was refused, and happened all the same/;

export const commitAnswerMutants: readonly Mutant[] = [
  {
    name: "commit counts if the newest table has it (A1)",
    about: "The next holder has completed the commit and left it out before its author looks.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: CommitFoundInTheHead }),
      "broken: a committer and a breaker",
    ),
    breaks: refused,
  },
  {
    name: "commit refused because its epoch is collected (A2m)",
    about: "All later appends build on it, but its author finds `open` gone and gives up.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: CollectedMeansLost }),
      "broken: a committer, rolling and collection",
    ),
    breaks: refused,
  },
];
