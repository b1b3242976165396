// Known-wrong variants of the operations on a tree.
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { holdfastError, isHoldfastError, type ErrorCode } from "../../../src/errors.ts";
import type { Change } from "../../../src/files/model/file-tree.ts";
import type { Tree } from "../../../src/files/tree/tree.ts";
import { root, staged } from "../../scenarios/files/file-actors.ts";
import { fileScenarios } from "../../scenarios/files/files.ts";
import { lateCommitterScenarios } from "../../scenarios/files/late-committers.ts";
import { lostAnswerScenarios } from "../../scenarios/files/lost-answers.ts";
import { withCommits, withDrafts, wrapping } from "../../scenarios/files/wrapped-tree.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Announces a change only after it was applied. */
function announcedLate(tree: Tree): Tree {
  const { changes } = tree;
  const announcements: (() => Promise<Change>)[] = [];
  const announce: typeof changes.announce = async (staged) => {
    announcements.push(() => changes.announce(staged));
    return { ...staged.record, number: 1, at: new Date(0) };
  };
  const late = withCommits(tree, async (draft) => {
    await draft.commit();
    for (const each of announcements.splice(0)) await each();
  });
  return wrapping(late, { changes: wrapping(changes, { announce }) });
}

/** Trusts the stat from before the lock. */
function trustingLook(tree: Tree): Tree {
  const seen = new Map<string, ReturnType<Tree["findLook"]>>();
  const findLook: Tree["findLook"] = async (path) => {
    const found = seen.get(path) ?? tree.findLook(path);
    seen.set(path, found);
    return await found;
  };
  // Forgets the stats at the beginning of each operation.
  const forgetting = withDrafts(tree, () => (seen.clear(), {}));
  return wrapping(forgetting, { findLook });
}

/**
 * Moves the caller's directory into the draft. If the commit fails, the directory is removed with
 * the draft.
 */
function renamedIn(tree: Tree): Tree {
  return withDrafts(tree, (draft) => ({
    in: (target) => draft.in(target, (path) => tree.disk.rename(staged, path)),
  }));
}

/** Consumes the caller's directory as soon as it is linked. */
function consumedEarly(tree: Tree): Tree {
  return withDrafts(tree, (draft) => ({
    in: (target, fill) =>
      draft.in(target, async (path) => {
        await fill(path);
        await removeTree(tree.disk, staged);
      }),
  }));
}

/** Treats a commit that ends with this code as failed. */
function failedBy(code: ErrorCode): (tree: Tree) => Tree {
  return (tree) =>
    withCommits(tree, async (draft) => {
      await draft.commit().catch((error: unknown) => {
        if (!isHoldfastError(error, code)) throw error;
        throw holdfastError("IO_ERROR", "The disk failed.", { path: root, errno: "EIO" });
      });
    });
}

/** Treats an announcement or a commit that ends with this code as committed. */
function doneBy(code: ErrorCode): (tree: Tree) => Tree {
  return (tree) => {
    const { changes } = tree;
    let isDone = false;
    const orDone = (error: unknown): void => {
      if (!isHoldfastError(error, code)) throw error;
      isDone = true;
    };
    const announce: typeof changes.announce = async (staged) => {
      isDone = false;
      const announced = await changes.announce(staged).catch(orDone);
      return announced ?? { ...staged.record, number: 1, at: new Date(0) };
    };
    const trusting = withCommits(tree, async (draft) => {
      if (!isDone) await draft.commit().catch(orDone);
    });
    return wrapping(trusting, { changes: wrapping(changes, { announce }) });
  };
}

export const fileMutants: readonly Mutant[] = [
  {
    name: "change log that is appended after the commit",
    about: "If the process dies in between, no follower learns of the change.",
    scenario: scenarioNamed(fileScenarios({ treeOf: announcedLate }), "files: a writer that dies"),
    breaks: /missing in the log/,
  },
  {
    name: "lock that is chosen by an old look",
    about: "The path was a file at the check, and is a directory under the lock.",
    scenario: scenarioNamed(
      fileScenarios({ treeOf: trustingLook }),
      "files: a removal of a file that becomes a directory",
    ),
    breaks: /not covered/,
  },
  {
    name: "missing directory by an old look",
    about: "Both writers create the same directory, and the second one is refused.",
    scenario: scenarioNamed(
      fileScenarios({ treeOf: trustingLook }),
      "files: two writers below a directory that is missing",
    ),
    breaks: /exists/,
  },
  {
    name: "staged directory that is renamed into the draft",
    about: "If the process dies before its commit, the only copy is swept with its draft.",
    scenario: scenarioNamed(fileScenarios({ treeOf: renamedIn }), "files: an adder that dies"),
    breaks: /staged content is lost/,
  },
  {
    name: "staged directory that is removed before the commit",
    about: "If the process dies before its commit, it has removed files that are not in the tree.",
    scenario: scenarioNamed(fileScenarios({ treeOf: consumedEarly }), "files: an adder that dies"),
    breaks: /staged content is lost/,
  },
  {
    name: "commit in doubt that is told as a failure",
    about: "The append happened, but the caller gets an ordinary error and repeats the operation, or does another.",
    scenario: scenarioNamed(
      lostAnswerScenarios({ treeOf: failedBy("OUTCOME_UNKNOWN") }),
      "files: a writer whose answers are lost",
    ),
    breaks: /happened all the same/,
  },
  {
    name: "commit in doubt that is told as a success",
    about: "The append did not happen, but the caller is told that it did.",
    scenario: scenarioNamed(
      lostAnswerScenarios({ treeOf: doneBy("OUTCOME_UNKNOWN") }),
      "files: a writer whose answers are lost",
    ),
    breaks: /has not happened/,
  },
  {
    name: "late committer that is told of a success",
    about: "The committer lost its lock while it slept, and the next holder has counted without its update.",
    scenario: scenarioNamed(
      lateCommitterScenarios({ treeOf: doneBy("LOCK_LOST") }),
      "files: the next holder against a committer that sleeps",
    ),
    breaks: /were acknowledged, and it is/,
  },
];
