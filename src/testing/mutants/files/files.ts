// Known-wrong variants of the operations on a tree.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import { StagedDirectory } from "../../../files/operations/staged-directory.ts";
import { TreeWork, type Commit, type Plan } from "../../../files/operations/tree-work.ts";
import type { RedoDraft } from "../../../locks/redo/draft.ts";
import { fileScenarios } from "../../scenarios/files/files.ts";
import { lateCommitterScenarios } from "../../scenarios/files/late-committers.ts";
import { lostAnswerScenarios } from "../../scenarios/files/lost-answers.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Announces a change when it is done. */
class AnnouncedLate extends TreeWork {
  override async commit(draft: RedoDraft, { change, stage }: Commit): Promise<Change> {
    await stage();
    await draft.commit();
    return await this.place.changes.append(change);
  }
}

/** Takes the look from before the lock for what is there. */
class TrustingLook extends TreeWork {
  protected override async lookAgain<P extends Plan>(wanted: P): Promise<P> {
    return wanted;
  }
}

/** Moves the caller's directory into the draft, which a refused or dead commit takes with it. */
class RenamedIn extends StagedDirectory {
  override async fill(target: string): Promise<void> {
    await this.target.rename(this.path, target);
  }
}

/** Consumes the caller's directory as soon as it is linked. */
class ConsumedEarly extends StagedDirectory {
  override async fill(target: string): Promise<void> {
    await super.fill(target);
    await super.consume();
  }
}

/** Takes a commit whose outcome is not known for one that has failed. */
class DoubtAsFailure extends TreeWork {
  override async commit(draft: RedoDraft, commit: Commit): Promise<Change> {
    try {
      return await super.commit(draft, commit);
    } catch (error) {
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      throw holdfastError("IO_ERROR", "The disk failed.", { path: commit.change.path, errno: "EIO" });
    }
  }
}

/** Takes it for one that has happened. */
class DoubtAsSuccess extends TreeWork {
  override async commit(draft: RedoDraft, commit: Commit): Promise<Change> {
    try {
      return await super.commit(draft, commit);
    } catch (error) {
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      return { ...commit.change, number: 1 };
    }
  }
}

/** Takes the loss of its lock before the commit for a commit by the next holder. */
class LossAsSuccess extends TreeWork {
  override async commit(draft: RedoDraft, commit: Commit): Promise<Change> {
    try {
      return await super.commit(draft, commit);
    } catch (error) {
      if (!isHoldfastError(error, "LOCK_LOST")) throw error;
      return { ...commit.change, number: 1 };
    }
  }
}

export const fileMutants: readonly Mutant[] = [
  {
    name: "change log that is appended after the commit",
    about: "A process that dies in between leaves a change that no follower is told of.",
    scenario: scenarioNamed(fileScenarios({ WorkClass: AnnouncedLate }), "files: a writer that dies"),
    breaks: /missing in the log/,
  },
  {
    name: "lock that is chosen by an old look",
    about: "What was a file at the look is a directory under the lock.",
    scenario: scenarioNamed(
      fileScenarios({ WorkClass: TrustingLook }),
      "files: a removal of a file that becomes a directory",
    ),
    breaks: /not covered/,
  },
  {
    name: "missing directory by an old look",
    about: "Both writers bring the same directory in, and the second one is refused.",
    scenario: scenarioNamed(
      fileScenarios({ WorkClass: TrustingLook }),
      "files: two writers below a directory that is missing",
    ),
    breaks: /exists/,
  },
  {
    name: "staged directory that is renamed into the draft",
    about: "A process that dies before its commit takes the only copy with it.",
    scenario: scenarioNamed(fileScenarios({ StagedClass: RenamedIn }), "files: an adder that dies"),
    breaks: /staged content is lost/,
  },
  {
    name: "staged directory that is removed before the commit",
    about: "A process that dies before its commit has removed what it did not bring in.",
    scenario: scenarioNamed(fileScenarios({ StagedClass: ConsumedEarly }), "files: an adder that dies"),
    breaks: /staged content is lost/,
  },
  {
    name: "commit in doubt that is told as a failure",
    about: "The append was done, and the caller is told an ordinary error: it does the same again, or something else.",
    scenario: scenarioNamed(
      lostAnswerScenarios({ WorkClass: DoubtAsFailure }),
      "files: a writer whose answers are lost",
    ),
    breaks: /happened all the same/,
  },
  {
    name: "commit in doubt that is told as a success",
    about: "The append was not done, and the caller is told that it was.",
    scenario: scenarioNamed(
      lostAnswerScenarios({ WorkClass: DoubtAsSuccess }),
      "files: a writer whose answers are lost",
    ),
    breaks: /has not happened/,
  },
  {
    name: "late committer that is told of a success",
    about: "Its lock was lost while it slept, and the next holder has counted on without it.",
    scenario: scenarioNamed(
      lateCommitterScenarios({ WorkClass: LossAsSuccess }),
      "files: the next holder against a committer that sleeps",
    ),
    breaks: /were acknowledged, and it is/,
  },
];
