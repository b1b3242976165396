// Known-wrong answers to an overtaken committer: each reports LOCK_LOST for a commit that happened,
// and the caller repeats it.
import type { RollingEntry } from "../../../src/durable/chain/rolling-chain.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import type { TableState } from "../../../src/locks/table/request.ts";
import { brokenHolderScenarios } from "../../scenarios/locks/broken-holders.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * A1: a commit counts only if the newest table has it. Others may already have completed and
 * dropped it.
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

/** A2m: a commit whose epoch was collected is reported as failed. */
class CollectedMeansLost extends LockTable {
  protected override async counts(): Promise<boolean> {
    return false;
  }
}

const refused = /was refused, and happened all the same/;

export const commitAnswerMutants: readonly Mutant[] = [
  {
    name: "commit counts if the newest table has it (A1)",
    about: "The next holder completed the commit and dropped it from the table before its author checks.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: CommitFoundInTheHead }),
      "broken: a committer and a breaker",
    ),
    breaks: refused,
  },
  {
    name: "commit refused because its epoch is collected (A2m)",
    about: "All later appends build on the commit, but its author finds no `open` file and reports a failure.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: CollectedMeansLost }),
      "broken: a committer, rolling and collection",
    ),
    breaks: refused,
  },
];
