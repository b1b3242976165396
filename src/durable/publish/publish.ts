// Publish: a file appears under its name complete and durable, or not at all.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { hasErrno, isOutcomeUnknown } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { retryOutage } from "./retry-outage.ts";
import { parentOf, syncNames } from "./directory.ts";
import { discard, assertNotSwept, newTemp, stage, type Staging } from "./staging.ts";

/**
 * How often an operation whose outcome is unknown is asked for again before the caller is told so.
 */
const triesMax = 3;

export interface PublishOptions {
  /** Default true. False only for what need not survive a power cut. */
  readonly sync?: boolean | undefined;
}

/**
 * Makes `target` with exactly these bytes if nothing has that name: of many callers one gets true.
 * `bytes` must contain an id of the caller's own: after a lost reply only the content tells which
 * caller won. OUTCOME_UNKNOWN when even that cannot be read, or when nothing is there and another
 * process may have removed it already. `isPermanent` says that no process does, so that the link
 * may be repeated. A crash leaves the whole file or none, and perhaps a temp file. Costs: create,
 * write, sync, link, sync directory, unlink.
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
  /** Makes the names in a directory durable; false for what need not survive a power cut. */
  readonly sync: false | ((directory: string) => Promise<void>);
  readonly isPermanent: boolean;
  /** Whether `proof` is only the beginning of the file. */
  readonly isPrefix?: boolean | undefined;
}

/** As `putIfAbsent`, for a file that was staged before: `proof` is its content, or its beginning. */
export async function putStaged(
  disk: Disk,
  temp: string,
  target: string,
  proof: Uint8Array,
  { sync, isPermanent, isPrefix }: PutStagedOptions,
): Promise<boolean> {
  try {
    const won = await linkOnce(disk, temp, target, proof, { mayRepeat: isPermanent, isPrefix });
    // After the link and before the answer: a name that a power cut takes back was never acknowledged.
    if (won && sync !== false) await syncParent(target, sync);
    return won;
  } catch (error) {
    // What had that name was removed before it could be read, and it may have been this file.
    throw hasErrno(error, "ESTALE") ? outcomeUnknown(target, error) : error;
  }
}

/**
 * Makes `target` these bytes in one step, whatever was there: readers see the old file or the new
 * one. Concurrent callers overwrite each other; that is what locks are for. OUTCOME_UNKNOWN as
 * above. Costs: create, write, sync, rename, sync directory.
 */
export async function replace(
  staging: Staging,
  target: string,
  bytes: Uint8Array,
  { sync = true }: PublishOptions = {},
): Promise<void> {
  const temp = await stage(staging, bytes, { sync });
  try {
    // The source is gone because it became the target, which may have been replaced since, or
    // because it was swept. Only the content can tell.
    if (
      !(await renameOnce(staging.disk, temp, target)) &&
      !(await carries(staging.disk, target, bytes, { inDoubt: true }))
    )
      throw outcomeUnknown(target, undefined);
  } catch (error) {
    await discard(staging, temp);
    throw error;
  }
  if (sync) await syncParent(target, (directory) => syncNames(staging.disk, directory));
}

/**
 * True when `target` is this very file now; false when it is another one. The one place that says what a failed link
 * means. `bytes` is the content of the file, or with `isPrefix` the beginning that no other file has.
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
      // "No" to this request says nothing about an earlier one that was never answered.
      if (!unknown && !hasErrno(error, "EEXIST", "ENOENT")) throw inDoubt ? outcomeUnknown(target, error) : error;
      // A repeated request fails although the first one was done. Content decides: link counts and
      // inode numbers are answered from caches.
      if (await carries(disk, target, bytes, { inDoubt, isPrefix })) return true;
      if (hasErrno(error, "EEXIST")) return false;
      if (hasErrno(error, "ENOENT")) throw error;
      // Not there, perhaps because another process has removed it already: then another link would
      // make it twice.
      if (!mayRepeat) throw outcomeUnknown(target, error);
      // A name that stays: the same link again is safe even if the first request is still on its
      // way. Stale handles are looked up anew.
      if (tries >= triesMax) throw hasErrno(error, "ESTALE") ? error : outcomeUnknown(target, error);
    }
  }
}

/**
 * Whether `path` is there, as the server of a share knows: a second name for it can be made only if
 * it is. An open may be answered by a client that has it open already, though another machine has
 * removed it. LOCK_LOST when the staging directory is gone, which says nothing about `path`.
 */
export async function canLinkFrom(staging: Staging, path: string): Promise<boolean> {
  const temp = await findLinked(staging, path);
  if (temp !== undefined) await discard(staging, temp);
  return temp !== undefined;
}

/** The same, and gives that second name, for a caller that reads the file by it and discards it then. */
export async function findLinked(staging: Staging, path: string): Promise<string | undefined> {
  const { disk } = staging;
  const directory = await staging.directory();
  const temp = newTemp(staging, directory);
  try {
    // By the directory of `path`: a client that remembers a file which has no name any more looks
    // it up anew.
    await retryOutage(disk, parentOf(path), () => disk.link(path, temp));
  } catch (error) {
    // The name is random: it can only have been made by this very request, whose first answer was
    // lost.
    if (!hasErrno(error, "EEXIST")) {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      // The same answer comes when this process was taken for dead and its directory was swept.
      // Asked after the link, of that very directory: its name is never made again, so if it is
      // there now it was there then.
      await assertNotSwept(staging, directory);
      // It is not known whether `path` is there, and a wrong "gone" would end what another process
      // holds.
      if (hasErrno(error, "ESTALE")) throw error;
      return undefined;
    }
  }
  return temp;
}

/**
 * Whether `path`, which this machine may have seen before, is there now: on a share another machine
 * may have removed it. Its directory is opened first. Otherwise a client that remembers the file
 * acts on the file itself, which can be linked from for as long as it has another name anywhere.
 * Not for a name that this machine may have looked for before it was made: absence is remembered
 * too.
 */
export async function isStillThere(staging: Staging, path: string): Promise<boolean> {
  const { disk } = staging;
  if (disk.volume.kind === "local") return await disk.canOpen(path);
  return (await disk.canOpen(parentOf(path))) && (await canLinkFrom(staging, path));
}

/**
 * Renames `from` to `to`. False when `from` is gone, moved by an earlier request of this call or by
 * another process: then `to` tells, or it does not matter. The one place that says what a failed
 * rename means. As long as its source is there, a rename has not happened and may be asked for
 * again, so `from` must be a name that is never made again, or `to` must be in a directory that is
 * gone before it is. ENOENT when `from` is there and the directory of `to` is not. OUTCOME_UNKNOWN
 * when it cannot be found out.
 */
export async function renameOnce(disk: Disk, from: string, to: string): Promise<boolean> {
  let inDoubt = false;
  for (let tries = 1; ; tries++) {
    try {
      await disk.rename(from, to);
      return true;
    } catch (error) {
      inDoubt ||= isOutcomeUnknown(error);
      // "No" to this request says nothing about an earlier one that was never answered.
      if (!isOutcomeUnknown(error) && !hasErrno(error, "ENOENT")) throw inDoubt ? outcomeUnknown(to, error) : error;
      // The source first: once it is gone nothing moves any more, so what is looked at next stays
      // as it is.
      if (!(await isThere(disk, from))) return false;
      if (hasErrno(error, "ENOENT") && !(await isThere(disk, parentOf(to)))) throw error;
      // Both are there: the client had remembered an absence, and has looked again.
      if (tries >= triesMax) throw outcomeUnknown(to, error);
    }
  }
}

/**
 * Moves `from` to `to`, a name that no other process ever makes: true when it is there now, false
 * when another process has moved or removed `from`. Fails as `renameOnce` does.
 */
export async function moveOnce(disk: Disk, from: string, to: string): Promise<boolean> {
  return (await renameOnce(disk, from, to)) || (await isThere(disk, to));
}

/**
 * As the file system itself knows. OUTCOME_UNKNOWN when the look fails: the client of a share may
 * have asked twice, so "no" may be the answer to a change that was made.
 */
async function isThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
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
    // Absent, or longer than `bytes`: another file.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "EISDIR", "EFBIG")) return false;
    // The file was removed between the open and the read. The caller knows whether it can have been
    // this one.
    if (!inDoubt && hasErrno(error, "ESTALE")) throw error;
    // The client of a share may have asked twice, so the name may have been taken by this very
    // request.
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
  const message = `It is not known whether ${path} was written: the answer was lost. Repeating it with the same id is safe.`;
  return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
}

function noHardLinks(path: string, cause: unknown): Error {
  const message = `${path} cannot be made: this file system has no hard links, so a name cannot be won safely there. Use another file system.`;
  return holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["hard links"] }, cause);
}
