// Publish: a file appears under its name complete and durable, or not at all.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { retryOutage } from "./retry-outage.ts";
import { parentOf, syncNames } from "./directory.ts";
import { discard, assertNotSwept, newTemp, stage, type Staging } from "./staging.ts";

/** How often an operation with an unknown outcome is repeated before the caller gets OUTCOME_UNKNOWN. */
const triesMax = 3;

/** Options of `putIfAbsent` and `replace`. */
export interface PublishOptions {
  /** Makes the file durable. False only for a file that need not survive a power cut. Default true. */
  readonly sync?: boolean | undefined;
}

/**
 * Creates `target` with exactly these bytes if the name is free: of many callers, one gets true. A
 * crash leaves the whole file or none, and perhaps a temp file. Costs: create, write, sync, link,
 * sync directory, unlink.
 *
 * `bytes` must contain a unique id of the caller: after a lost reply, only the content tells who
 * won. `isPermanent` (default false) states that no process removes `target`, so that the link may
 * be repeated. Throws OUTCOME_UNKNOWN if the winner cannot be determined, and LOCK_LOST if this
 * process was judged dead meanwhile.
 */
export async function putIfAbsent(
  staging: Staging,
  target: string,
  bytes: Uint8Array,
  { sync = true, isPermanent = false }: PublishOptions & { readonly isPermanent?: boolean } = {},
): Promise<boolean> {
  const temp = await stage(staging, bytes, { sync });
  try {
    const syncing = sync && ((directory: string) => syncNames(staging.disk, directory));
    return await putStaged(staging.disk, temp, target, bytes, { sync: syncing, isPermanent });
  } finally {
    await discard(staging, temp);
  }
}

export interface PutStagedOptions {
  /** Makes the names in a directory durable; false for files that need not survive a power cut. */
  readonly sync: false | ((directory: string) => Promise<void>);
  readonly isPermanent: boolean;
  /** True if `proof` is only the beginning of the file. */
  readonly isPrefix?: boolean | undefined;
}

/** Like `putIfAbsent`, for a file that is already staged. `proof` is its content, or its beginning. */
export async function putStaged(
  disk: Disk,
  temp: string,
  target: string,
  proof: Uint8Array,
  { sync, isPermanent, isPrefix }: PutStagedOptions,
): Promise<boolean> {
  try {
    const won = await linkOnce(disk, temp, target, proof, { mayRepeat: isPermanent, isPrefix });
    // Sync after the link and before the reply: a name that a power cut removes was never
    // acknowledged.
    if (won && sync !== false) await syncParent(target, sync);
    return won;
  } catch (error) {
    // The file of that name was removed before it could be read, and it may have been this one.
    throw hasErrno(error, "ESTALE") ? outcomeUnknown(target, error) : error;
  }
}

/**
 * Replaces `target` with these bytes in one step: readers see the old file or the new one.
 * Concurrent callers overwrite each other; use a lock. Costs: create, write, sync, rename, sync
 * directory. `syncsName` is false if the caller syncs the directory (default: `sync`). Throws
 * OUTCOME_UNKNOWN, and LOCK_LOST if this process was judged dead meanwhile.
 */
export async function replace(
  staging: Staging,
  target: string,
  bytes: Uint8Array,
  { sync = true, syncsName = sync }: PublishOptions & { readonly syncsName?: boolean | undefined } = {},
): Promise<void> {
  const temp = await stage(staging, bytes, { sync });
  try {
    // The source is gone because it became the target, which may have been replaced since, or
    // because it was swept. Only the content can decide.
    if (
      !(await renameOnce(staging.disk, temp, target)) &&
      !(await carries(staging.disk, target, bytes, { inDoubt: true }))
    )
      throw outcomeUnknown(target, undefined);
  } catch (error) {
    await discard(staging, temp);
    throw error;
  }
  if (syncsName) await syncParent(target, (directory) => syncNames(staging.disk, directory));
}

/**
 * True if `target` is this file now; false if it is another one. Only this function decides what a
 * failed link means. `bytes` is the file's content, or with `isPrefix` a beginning that no other
 * file has.
 */
export async function linkOnce(
  disk: Disk,
  temp: string,
  target: string,
  bytes: Uint8Array,
  { mayRepeat, isPrefix = false }: { readonly mayRepeat: boolean; readonly isPrefix?: boolean | undefined },
): Promise<boolean> {
  let inDoubt = false;
  for (let tries = 1; ; tries++) {
    try {
      await disk.link(temp, target);
      return true;
    } catch (error) {
      if (hasErrno(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw noHardLinks(target, error);
      const unknown = isOutcomeUnknown(error);
      inDoubt ||= unknown;
      // A refusal of this request says nothing about an earlier one without a reply.
      if (!unknown && !hasErrno(error, "EEXIST", "ENOENT")) throw inDoubt ? outcomeUnknown(target, error) : error;
      // A repeated request fails although the first one succeeded. The content decides: link counts
      // and inode numbers come from caches.
      if (await carries(disk, target, bytes, { inDoubt, isPrefix })) return true;
      if (hasErrno(error, "EEXIST")) return false;
      if (hasErrno(error, "ENOENT")) throw error;
      // The name is absent, perhaps because another process already removed it: then another link
      // would create it twice.
      if (!mayRepeat) throw outcomeUnknown(target, error);
      // The name is permanent: repeating the link is safe even if the first request is still in
      // flight. Stale handles are looked up again.
      if (tries >= triesMax) throw hasErrno(error, "ESTALE") ? error : outcomeUnknown(target, error);
    }
  }
}

/**
 * True if `path` exists according to the server of a share: only then can it get a second name. A
 * client that already has the file open may answer an open itself, although another machine removed
 * the file. Throws LOCK_LOST if the staging directory is gone, which says nothing about `path`.
 */
export async function canLinkFrom(staging: Staging, path: string): Promise<boolean> {
  const temp = await findLinked(staging, path);
  if (temp !== undefined) await discard(staging, temp);
  return temp !== undefined;
}

/** Like `canLinkFrom`, but returns the second name. The caller reads the file by it, then discards it. */
export async function findLinked(staging: Staging, path: string): Promise<string | undefined> {
  const { disk } = staging;
  const directory = await staging.directory();
  const temp = newTemp(staging, directory);
  try {
    // The retry opens the directory of `path`: a client that remembers a file without a name then
    // looks it up again.
    await retryOutage(disk, parentOf(path), () => disk.link(path, temp));
  } catch (error) {
    // The name is random: only this request can have made it, and its first reply was lost.
    if (!hasErrno(error, "EEXIST")) {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      // The link also fails with this error if this process was judged dead and its directory
      // swept. Check that directory after the link: its name is never reused, so if it exists now
      // it existed then.
      await assertNotSwept(staging, directory);
      // It is unknown if `path` exists, and a wrong "gone" would end another process's hold.
      if (hasErrno(error, "ESTALE")) throw error;
      return undefined;
    }
  }
  return temp;
}

/**
 * True if `path`, which this machine may have seen before, exists now: on a share another machine
 * may have removed it. The parent directory is opened first. Otherwise a client that remembers the
 * file acts on the file itself, which can be linked from as long as it has any other name. Not for
 * a name that this machine may have looked up before it was made: clients remember absence too.
 */
export async function isStillThere(staging: Staging, path: string): Promise<boolean> {
  const { disk } = staging;
  if (disk.volume.kind === "local") return await disk.canOpen(path);
  return (await disk.canOpen(parentOf(path))) && (await canLinkFrom(staging, path));
}

/**
 * Renames `from` to `to`. False if `from` is gone, moved by an earlier request of this call or by
 * another process: then `to` shows which, or it does not matter. Only this function decides what a
 * failed rename means.
 * While its source exists, a rename has not happened and may be repeated. So `from` must be a name
 * that is never reused, or the directory of `to` must be gone before `from` is reused.
 * Throws ENOENT if `from` exists and the directory of `to` does not, OUTCOME_UNKNOWN if the outcome
 * cannot be determined.
 */
export async function renameOnce(disk: Disk, from: string, to: string): Promise<boolean> {
  let inDoubt = false;
  for (let tries = 1; ; tries++) {
    try {
      await disk.rename(from, to);
      return true;
    } catch (error) {
      inDoubt ||= isOutcomeUnknown(error);
      // A refusal of this request says nothing about an earlier one without a reply.
      if (!isOutcomeUnknown(error) && !hasErrno(error, "ENOENT")) throw inDoubt ? outcomeUnknown(to, error) : error;
      // Check the source first: once it is gone nothing moves any more, so the next check sees a
      // final state.
      if (!(await isThere(disk, from))) return false;
      if (hasErrno(error, "ENOENT") && !(await isThere(disk, parentOf(to)))) throw error;
      // Both exist: the client had cached an absence, and has now looked again.
      if (tries >= triesMax) throw outcomeUnknown(to, error);
    }
  }
}

/**
 * Moves `from` to `to`, a name that no other process ever makes. True if `to` exists now; false if
 * another process moved or removed `from`. Fails like `renameOnce`.
 */
export async function moveOnce(disk: Disk, from: string, to: string): Promise<boolean> {
  return (await renameOnce(disk, from, to)) || (await isThere(disk, to));
}

/**
 * Asks the file system itself. Throws OUTCOME_UNKNOWN if the stat fails: the client of a share may
 * have sent a request twice, so a refusal may belong to a change that was made.
 */
async function isThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
    // A symbolic link to itself, made by another program.
    if (hasErrno(error, "ELOOP")) return true;
    throw outcomeUnknown(path, error);
  }
}

async function carries(
  disk: Disk,
  target: string,
  bytes: Uint8Array,
  { inDoubt, isPrefix = false }: { readonly inDoubt: boolean; readonly isPrefix?: boolean },
): Promise<boolean> {
  try {
    const found = isPrefix ? await readStart(disk, target, bytes.length) : await disk.readFile(target, bytes.length);
    return Buffer.compare(found, bytes) === 0;
  } catch (error) {
    // Absent, or longer than `bytes`: it is another file.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "EISDIR", "EFBIG")) return false;
    // The file was removed between open and read. The caller knows if it can have been this one.
    if (!inDoubt && hasErrno(error, "ESTALE")) throw error;
    // The client of a share may have sent the request twice, so this very request may have taken
    // the name.
    const mayBeOurs = inDoubt || disk.volume.kind !== "local" || isOutcomeUnknown(error);
    throw mayBeOurs ? outcomeUnknown(target, error) : error;
  }
}

async function readStart(disk: Disk, path: string, length: number): Promise<Uint8Array> {
  const file = await disk.open(path, "read");
  try {
    return await file.read(0, length);
  } finally {
    await file.close();
  }
}

async function syncParent(target: string, sync: (directory: string) => Promise<void>): Promise<void> {
  try {
    await sync(parentOf(target));
  } catch (error) {
    throw isHoldfastError(error, "UNSUPPORTED_DISK") ? error : outcomeUnknown(target, error);
  }
}

export function outcomeUnknown(path: string, cause: unknown): Error {
  const message = `The reply was lost, so ${path} may or may not have been written. Retrying with the same id is safe.`;
  return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
}

function noHardLinks(path: string, cause: unknown): Error {
  const message = `${path} cannot be created: this file system has no hard links, so a name cannot be won safely there. Use another file system.`;
  return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["hard links"] }, cause);
}
