// Adding a directory that was prepared elsewhere: in one step, under a tree lock that is kept until it is indexed.
// The lock goes to the worker with the ticket.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Added, AddOptions, Change } from "../model/file-tree.ts";
import {
  bringInDirectories,
  fillDirectories,
  lookAtTarget,
  mustHaveWay,
  type TargetLook,
} from "./missing-directories.ts";
import { mustHaveNoMounts } from "./one-device.ts";
import type { StagedDirectory } from "./staged-directory.ts";
import type { Call, Granted, Plan, TreeWork } from "./tree-work.ts";

/** More names of one kind than a directory should have. */
const suffixMax = 10_000;

interface AddPlan extends Plan, TargetLook {
  readonly target: string;
}

/** `staged` is removed when the commit is done. */
export async function addDirectory(
  work: TreeWork,
  path: string,
  staged: StagedDirectory,
  { naming = "replace", ...options }: AddOptions,
): Promise<Added> {
  const call: Call = { name: "add", path, ...options };
  const added =
    naming === "suffix"
      ? await addUnderFreeName(work, call, staged)
      : await work.underLock(
          call,
          () => lookForAdd(work, path),
          async (granted, plan) => {
            if (naming === "fail" && plan.found !== undefined) throw exists(plan.target);
            return await takeIn(work, granted, plan, staged, call);
          },
        );
  await staged.consume();
  return added;
}

async function lookForAdd({ place }: TreeWork, path: string): Promise<AddPlan> {
  const { path: target } = await place.locate(path);
  const look = await lookAtTarget(place, target);
  return { ...look, target, requests: [{ path: look.missing ?? target, mode: "tree" }] };
}

/** The first of `path`, `path_1`, `path_2` … that is free and not locked. */
async function addUnderFreeName(work: TreeWork, call: Call, staged: StagedDirectory): Promise<Added> {
  const { path: target } = await work.place.locate(call.path);
  await ensureParent(work, call, target);
  for (let suffix = 0; suffix <= suffixMax; suffix++) {
    const candidate = suffix === 0 ? target : `${target}_${suffix}`;
    if ((await work.place.findLook(candidate)) !== undefined) continue;
    try {
      const added = await work.underLock(
        { ...call, path: candidate, timeoutMs: 0 },
        () => lookForAdd(work, candidate),
        async (granted, plan) =>
          plan.found === undefined ? await takeIn(work, granted, plan, staged, call) : undefined,
      );
      if (added !== undefined) return added;
    } catch (error) {
      // The next name is as busy when the lock is on a directory above.
      const isOfThisName =
        isHoldfastError(error, "RESOURCE_BUSY") &&
        error.blockedBy.length > 0 &&
        error.blockedBy.every((lock) => isWithin(lock.path, candidate));
      if (!isOfThisName) throw error;
    }
  }
  throw exists(`${target}_${suffixMax}`);
}

/** In a commit of its own: all that look for a free name there would need the lock on the missing directory. */
async function ensureParent(work: TreeWork, call: Call, target: string): Promise<void> {
  if ((await lookAtTarget(work.place, target)).missing === undefined) return;
  await work.underLock(
    call,
    () => lookForAdd(work, target),
    async (granted, plan) => {
      mustHaveWay(target, plan);
      const { missing } = plan;
      if (missing !== undefined) await bringInDirectories(work.place, granted, { highest: missing, target });
    },
  );
}

async function takeIn(
  work: TreeWork,
  granted: Granted,
  plan: AddPlan,
  staged: StagedDirectory,
  call: Call,
): Promise<Added> {
  const { place } = work;
  const { target, found, missing } = plan;
  mustHaveWay(target, plan);
  const draft = await granted.draft();
  if (found !== undefined) await mustHaveNoMounts(place, target, found);
  const fill = (path: string): Promise<void> => staged.fill(path);
  const stage = async (): Promise<void> => {
    if (found !== undefined) await draft.out(target);
    if (missing === undefined) await draft.in(target, fill);
    else await draft.in(missing, (path) => fillDirectories(place.disk, { highest: missing, target }, path, fill));
    call.signal?.throwIfAborted();
  };
  const takesAway = found !== undefined;
  const change = await work.commit(draft, { change: { kind: "written", path: target }, stage, takesAway });
  return { path: target, task: await handOver(work, granted, change, call) };
}

/** The lock goes to the worker; without an index it ends with this call. */
async function handOver(work: TreeWork, { hold }: Granted, change: Change, { within }: Call): Promise<string> {
  const { queue } = work;
  if (!queue.isOn) return "";
  // Such a hold ends with the one that it is within, and cannot go to another process.
  if (within !== undefined) return await queue.indexWithin(change, hold);
  let token: string;
  try {
    token = await hold.transfer();
  } catch (error) {
    // The hold was lost. What was committed is done, and the worker takes a lock of its own.
    if (!isHoldfastError(error)) throw error;
    return await work.tell(change);
  }
  const task = await work.tell(change, token);
  if (task === "") await takeBack(work, token);
  return task;
}

/** No worker gets the token: without this the offer would stand in the way until it lapses. */
async function takeBack({ place }: TreeWork, token: string): Promise<void> {
  try {
    const hold = await (await place.locks()).receive(token);
    await hold.release();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
  }
}

function exists(path: string): Error {
  return holdfastError("FILE_EXISTS", `${path} is there already, and nothing was added.`, { path });
}
