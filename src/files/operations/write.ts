// Writing one file: in one step, under an exact lock, or under a tree lock on the highest directory that is missing.
import type { Body } from "../../common.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { assertNotSwept, discard, newTemp } from "../../durable/publish/staging.ts";
import { createUniqueFile } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { writeBody } from "../../part/body.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Change, ChangeContent, FileInfo, FileOptions, WriteOptions } from "../model/file-tree.ts";
import { stampOf, stampOfDigest } from "../tree/stamps.ts";
import { fillDirectories, lookAtTarget, mustHaveWay, type TargetLook } from "./missing-directories.ts";
import type { Granted, Plan, TreeWork } from "./tree-work.ts";

interface WritePlan extends Plan, TargetLook {
  /** Below the root, without symbolic links. */
  readonly target: string;
}

/** Makes a new file at the path that it is given. Durable when it resolves. */
type Fill = (path: string) => Promise<void>;

/** A content that is to become a file. */
interface NewContent {
  readonly size: number;
  readonly stamp: string;
  fillFor(plan: WritePlan): Fill;
}

export async function writeFile(work: TreeWork, path: string, body: Body, options: WriteOptions): Promise<FileInfo> {
  if (typeof body === "string" || body instanceof Uint8Array)
    return await writeContent(work, path, contentOf(work, body), options);
  // Before the lock is taken: the source may be slow.
  const { staging } = work.place.ground;
  const staged = newTemp(staging, await staging.directory());
  const { size, sha256 } = await writeBody(work.place.disk, staged, body, { signal: options.signal }).catch(
    async (error: unknown) => {
      // LOCK_LOST, if this process slept past its lease.
      if (hasErrno(error, "ENOENT")) await assertNotSwept(staging, parentOf(staged));
      throw error;
    },
  );
  const fill = async (target: string): Promise<void> => {
    if (!(await moveOnce(work.place.disk, staged, target))) throw diskError("ENOENT", "rename", staged);
  };
  try {
    return await writeContent(work, path, { size, stamp: stampOfDigest(sha256), fillFor: () => fill }, options);
  } finally {
    await discard(staging, staged);
  }
}

/** Copied: the caller may change its bytes while the lock is waited for. */
function contentOf(work: TreeWork, body: string | Uint8Array): NewContent {
  const bytes = Buffer.from(body);
  return { size: bytes.length, stamp: stampOf(bytes), fillFor: (plan) => fillBytes(work, bytes, plan) };
}

async function writeContent(
  work: TreeWork,
  path: string,
  content: NewContent,
  { ifStamp, ...options }: WriteOptions,
): Promise<FileInfo> {
  const { size, stamp } = content;
  const { change, modifiedAt } = await work.underLock(
    { name: "write", path, ...options },
    () => lookForWrite(work, path),
    async (granted, plan) => {
      if (ifStamp !== undefined) await mustHaveStamp(work, plan, ifStamp);
      const announced = await putFile(work, granted, plan, content.fillFor(plan));
      // Under the lock: the time is that of this content, unless a foreign program is there already.
      const written = await unlessFailed(work.place.findLook(plan.target));
      return { change: announced, modifiedAt: new Date(written?.mtimeMs ?? work.place.ground.ports.clock.wallMs()) };
    },
  );
  await work.tell(change);
  const indexed = (await unlessFailed(work.queue.isIndexed(change.path, stamp))) ?? false;
  return { path: change.path, directory: false, size, modifiedAt, indexed, stamp };
}

/** The file is written: a look that fails after that tells less, and must not tell that nothing has happened. */
async function unlessFailed<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    if (isHoldfastError(error)) return undefined;
    throw error;
  }
}

/** Reads, changes and writes under one lock. */
export async function updateFile(
  work: TreeWork,
  path: string,
  change: ChangeContent,
  options: FileOptions,
): Promise<void> {
  const announced = await work.underLock(
    { name: "update", path, ...options },
    () => lookForWrite(work, path),
    async (granted, plan) => {
      mustHaveWay(plan.target, plan);
      const current = plan.found === undefined ? undefined : await work.reader.findBytes(plan.target);
      const made = await change(current);
      if (made === undefined) return undefined;
      if (typeof made !== "string" && !(made instanceof Uint8Array))
        throw new TypeError("update: the function must give a string, bytes, or undefined.");
      options.signal?.throwIfAborted();
      return await putFile(work, granted, plan, contentOf(work, made).fillFor(plan));
    },
  );
  if (announced !== undefined) await work.tell(announced);
}

async function lookForWrite({ place }: TreeWork, path: string): Promise<WritePlan> {
  const { path: target } = await place.locate(path);
  const look = await lookAtTarget(place, target);
  const requests = [
    look.missing === undefined
      ? { path: target, mode: "exact" as const }
      : { path: look.missing, mode: "tree" as const },
  ];
  return { ...look, target, requests };
}

/** One file, under the lock of the plan. */
async function putFile(work: TreeWork, granted: Granted, plan: WritePlan, fill: Fill): Promise<Change> {
  const { disk } = work.place;
  const { target, missing } = plan;
  mustHaveWay(target, plan);
  const draft = await granted.draft();
  const stage = async (): Promise<void> => {
    if (missing === undefined) return await draft.in(target, fill);
    await draft.in(missing, (staged) => fillDirectories(disk, { highest: missing, target }, staged, fill));
  };
  const change = { kind: "written", path: target } as const;
  return await work.commit(draft, { change, stage, takesAway: false, isOneWait: true });
}

/** A file that is replaced keeps its mode, as far as the umask leaves it. */
function fillBytes({ place }: TreeWork, bytes: Uint8Array, { found }: WritePlan): Fill {
  const mode = found?.kind === "file" && found.mode !== undefined ? found.mode & 0o777 : undefined;
  return async (path) => await createUniqueFile(place.disk, path, bytes, { sync: true, mode });
}

/** By the content as it is under the lock. */
async function mustHaveStamp(work: TreeWork, { target }: WritePlan, expected: string | null): Promise<void> {
  const current = (await work.reader.describe(target))?.stamp;
  if ((current ?? null) === expected) return;
  const is = current === undefined ? "is no file" : `has the stamp ${current}`;
  const wanted = expected === null ? "that it is not there" : `the stamp ${expected}`;
  const message = `${target} ${is}, and the caller expects ${wanted}. Nothing was written: read it again, and decide anew.`;
  const facts = { key: target, ...(current === undefined ? {} : { current }) };
  throw holdfastError("PRECONDITION_FAILED", message, facts);
}
