// Adds a directory that was prepared elsewhere, in one step. The tree lock is kept until the
// directory is indexed: the ticket carries it to the worker.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { AddResult, AddOptions } from "../model/file-tree.ts";
import {
  commit,
  type OperationCall,
  type CommittedOperation,
  type OperationContext,
  type OperationPlan,
} from "./commit.ts";
import { mustHaveNoMounts } from "./one-device.ts";
import type { StagedDirectory } from "./staged-directory.ts";
import { bringIn, bringInDirectories, findTarget, lockedFor, mustBeReachable, type FoundTarget } from "./target.ts";

/** No directory should have this many names of one kind. */
const suffixMax = 10_000;

interface AddPlan extends OperationPlan, FoundTarget {
  readonly target: string;
}

/** Adds the staged directory, and removes `staged` after the commit. */
export async function addDirectory(
  context: OperationContext,
  path: string,
  staged: StagedDirectory,
  { naming = "replace", ...options }: AddOptions,
): Promise<AddResult> {
  const call: OperationCall = { name: "add", path, ...options };
  const add = naming === "suffix" ? addUnderFreeName : addAt;
  const added = await add(context, call, staged, naming);
  if (added === undefined) throw exists(path);
  await staged.consume();
  return { path: added.change.path, task: added.task };
}

/**
 * Adds at this path. If it exists, throws FILE_EXISTS with "fail", and returns undefined with
 * "suffix".
 */
async function addAt(
  context: OperationContext,
  call: OperationCall,
  staged: StagedDirectory,
  naming: AddOptions["naming"],
): Promise<CommittedOperation | undefined> {
  const { tree } = context;
  return await commit<AddPlan>(context, call, {
    plan: () => planAdd(context, call.path),
    draft: async (plan) => {
      const { target, found } = plan;
      if (found !== undefined && naming === "suffix") return undefined;
      if (found !== undefined && naming === "fail") throw exists(target);
      mustBeReachable(target, plan);
      if (found !== undefined) await mustHaveNoMounts(tree, target, found);
      return {
        change: { kind: "written", path: target },
        options: { isSingle: found === undefined },
        stage: async (steps) => {
          if (found !== undefined) await steps.out(target);
          await bringIn(tree, steps, plan, (path) => staged.fill(path));
          call.signal?.throwIfAborted();
        },
        takesAway: found !== undefined,
        isLockedUntilIndexed: true,
      };
    },
  });
}

/** Adds under the first of `path`, `path_1`, `path_2` … that is free and not locked. */
async function addUnderFreeName(
  context: OperationContext,
  call: OperationCall,
  staged: StagedDirectory,
): Promise<CommittedOperation> {
  const { tree } = context;
  const { path: target } = await tree.locate(call.path);
  await ensureParent(context, call, target);
  for (let suffix = 0; suffix <= suffixMax; suffix++) {
    const candidate = suffix === 0 ? target : `${target}_${suffix}`;
    if ((await tree.findLook(candidate)) !== undefined) continue;
    try {
      const added = await addAt(context, { ...call, path: candidate, timeoutMs: 0 }, staged, "suffix");
      if (added !== undefined) return added;
    } catch (error) {
      // If a directory above is locked, the next name is locked too.
      const isOfThisName =
        isHoldfastError(error, "RESOURCE_BUSY") &&
        error.blockedBy.length > 0 &&
        error.blockedBy.every((lock) => isWithin(lock.path, candidate));
      if (!isOfThisName) throw error;
    }
  }
  throw exists(`${target}_${suffixMax}`);
}

/**
 * Creates missing directories in a separate commit. Otherwise every caller that searches for a free
 * name would need the lock on the missing directory.
 */
async function ensureParent(context: OperationContext, call: OperationCall, target: string): Promise<void> {
  const { tree } = context;
  if ((await findTarget(tree, target)).missing === undefined) return;
  await commit<AddPlan>(context, call, {
    plan: () => planAdd(context, target),
    draft: async (plan, begin) => {
      mustBeReachable(target, plan);
      const { missing } = plan;
      if (missing !== undefined) await bringInDirectories(tree, begin, { highest: missing, target });
      return undefined;
    },
  });
}

async function planAdd({ tree }: OperationContext, path: string): Promise<AddPlan> {
  const located = await tree.locate(path);
  const found = await findTarget(tree, located.path);
  return { ...found, target: located.path, requests: [{ ...lockedFor(tree, located, found), mode: "tree" }] };
}

function exists(path: string): Error {
  return holdfastError("FILE_EXISTS", `${path} already exists, and nothing was added.`, { path });
}
