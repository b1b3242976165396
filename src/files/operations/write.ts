// Writes one file in one step, under an exact lock. If directories are missing, it takes a tree
// lock on the highest of them.
import type { Body } from "../../common.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { assertNotSwept, discard, newTemp } from "../../durable/publish/staging.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { writeBody } from "../../part/body.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { ChangeContent, FileInfo, FileOptions, WriteOptions } from "../model/file-tree.ts";
import { stampOf, stampOfDigest } from "../tree/stamps.ts";
import { commit, type OperationDraft, type OperationContext, type OperationPlan } from "./commit.ts";
import { bringIn, findTarget, lockedFor, mustBeReachable, type CreateEntry, type FoundTarget } from "./target.ts";

interface WritePlan extends OperationPlan, FoundTarget {
  /** The path below the root, with symbolic links resolved. */
  readonly target: string;
}

/** The content of a new file. */
interface NewContent {
  readonly size: number;
  readonly stamp: string;
  /** Returns the function that makes the file. `found` is the file that it replaces. */
  readonly fillFor: (found: FileStat | undefined) => CreateEntry;
}

export async function writeFile(
  context: OperationContext,
  path: string,
  body: Body,
  options: WriteOptions,
): Promise<FileInfo> {
  if (typeof body === "string" || body instanceof Uint8Array)
    return await writeContent(context, path, contentOf(context, body), options);
  // Stage before acquiring the lock: the source may be slow.
  const { disk, ground } = context.tree;
  const { staging } = ground;
  const staged = newTemp(staging, await staging.directory());
  const { size, sha256 } = await writeBody(disk, staged, body, { signal: options.signal }).catch(
    async (error: unknown) => {
      // Throws LOCK_LOST if this process slept past its lease.
      if (hasErrno(error, "ENOENT")) await assertNotSwept(staging, parentOf(staged));
      throw error;
    },
  );
  const fill: CreateEntry = async (target) => {
    if (!(await moveOnce(disk, staged, target))) throw diskError("ENOENT", "rename", staged);
  };
  try {
    const content = { size, stamp: stampOfDigest(sha256), fillFor: () => fill };
    return await writeContent(context, path, content, options);
  } finally {
    await discard(staging, staged);
  }
}

/** Reads, changes and writes a file under one lock. */
export async function updateFile(
  context: OperationContext,
  path: string,
  change: ChangeContent,
  options: FileOptions,
): Promise<void> {
  await commit<WritePlan>(
    context,
    { name: "update", path, ...options },
    {
      plan: () => planWrite(context, path),
      draft: async (plan) => {
        mustBeReachable(plan.target, plan);
        const current = plan.found === undefined ? undefined : await context.reader.findBytes(plan.target);
        const made = await change(current);
        if (made === undefined) return undefined;
        if (typeof made !== "string" && !(made instanceof Uint8Array))
          throw new TypeError("update: the function must return a string, bytes, or undefined.");
        options.signal?.throwIfAborted();
        return draftWrite(context, plan, contentOf(context, made));
      },
    },
  );
}

async function writeContent(
  context: OperationContext,
  path: string,
  content: NewContent,
  { ifStamp, ...options }: WriteOptions,
): Promise<FileInfo> {
  const { tree, queue } = context;
  const { size, stamp } = content;
  let file: FileStat | undefined;
  const committed = await commit<WritePlan>(
    context,
    { name: "write", path, ...options },
    {
      plan: () => planWrite(context, path),
      draft: async (plan) => {
        if (ifStamp !== undefined) await mustHaveStamp(context, plan, ifStamp);
        const draft = draftWrite(context, plan, content, (made) => (file = made));
        const onDurable = async (): Promise<void> => {
          file ??= await unlessFailed(tree.findLook(plan.target));
        };
        return { ...draft, onDurable };
      },
    },
  );
  const located = committed?.change.path ?? path;
  const modifiedAt = new Date(file?.mtimeMs ?? tree.ground.ports.clock.wallMs());
  const indexed = (queue && (await unlessFailed(queue.isIndexed(located, stamp)))) ?? false;
  return { path: located, directory: false, size, modifiedAt, indexed, stamp };
}

async function planWrite({ tree }: OperationContext, path: string): Promise<WritePlan> {
  const located = await tree.locate(path);
  const found = await findTarget(tree, located.path);
  const mode = found.missing === undefined ? "exact" : "tree";
  return { ...found, target: located.path, requests: [{ ...lockedFor(tree, located, found), mode }] };
}

/** `onMade` gets the written file, unless missing directories are created with it. */
function draftWrite(
  { tree }: OperationContext,
  plan: WritePlan,
  content: NewContent,
  onMade: (file: FileStat) => void = () => undefined,
): OperationDraft {
  const { target, missing, found } = plan;
  mustBeReachable(target, plan);
  return {
    change: { kind: "written", path: target },
    stage: async (steps) => {
      const made = await bringIn(tree, steps, plan, content.fillFor(found));
      if (missing === undefined) onMade(made);
    },
    takesAway: false,
    isOneWait: true,
  };
}

/**
 * Copies the bytes, because the caller may change them during the wait for the lock. A replaced
 * file keeps its mode, as far as the umask allows.
 */
function contentOf({ tree }: OperationContext, body: string | Uint8Array): NewContent {
  const bytes = Buffer.from(body);
  return {
    size: bytes.length,
    stamp: stampOf(bytes),
    fillFor: (found) => async (path) => {
      const mode = found?.kind === "file" && found.mode !== undefined ? found.mode & 0o777 : undefined;
      await createUniqueFile(tree.disk, path, bytes, { sync: true, mode });
    },
  };
}

/**
 * Returns undefined if `found` fails: the file is written, so a later stat must not make the write
 * fail.
 */
async function unlessFailed<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isHoldfastError(error)) return undefined;
    throw error;
  }
}

/** Compares the stamp with the content under the lock. Throws PRECONDITION_FAILED. */
async function mustHaveStamp(
  { reader }: OperationContext,
  { target }: WritePlan,
  expected: string | null,
): Promise<void> {
  const current = (await reader.describe(target))?.stamp;
  if ((current ?? null) === expected) return;
  const is = current === undefined ? "is not a file" : `has the stamp ${current}`;
  const wanted = expected === null ? "that it does not exist" : `the stamp ${expected}`;
  const message = `${target} ${is}, and the caller expects ${wanted}. Nothing was written: read it again, and decide anew.`;
  const facts = { key: target, ...(current === undefined ? {} : { current }) };
  throw holdfastError("PRECONDITION_FAILED", message, facts);
}
