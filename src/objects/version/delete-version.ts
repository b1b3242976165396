// Deletes an object: adds a delete marker if the bucket keeps versions, or removes a version
// permanently.
import { renameOnce } from "../../durable/publish/publish.ts";
import { discard, stage } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { nothing, retry, type AddedHead } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import { currentIn, currentSlotWithout, noContent, type KeyContent, type KeyVersion } from "../key/key-versions.ts";
import { mayChangeOthers, type DamagedSlot } from "../model/damaged-entry.ts";
import { encodeEntry, type MarkerEntry, type StubEntry } from "../model/entry.ts";
import type { Deleted, DeleteOptions } from "../model/object.ts";
import { hasBodyFiles } from "./body-files.ts";
import { findCurrent, findDamagedSlotOf, versionIdOf, mustBeReadable } from "./find-version.ts";
import { failed, mustMatch } from "./preconditions.ts";
import type { AnnounceKey } from "./put-version.ts";
import { discardBody } from "./stage-body.ts";

/**
 * Throws RETAINED, and PRECONDITION_FAILED if a condition fails. Deleting an object that does not
 * exist succeeds.
 */
export async function deleteObject(
  bucket: OpenBucket,
  key: string,
  options: DeleteOptions,
  announce: AnnounceKey,
): Promise<Deleted> {
  return await bucket.useKey(key, async (open) => {
    if (options.versionId !== undefined || bucket.settings.versioning === "off") {
      const removed = await removeVersion(bucket, key, open, options);
      if (removed !== "versions are kept") return removed;
    }
    return await addMarker(bucket, key, open, options, announce);
  });
}

async function addMarker(
  bucket: OpenBucket,
  key: string,
  open: OpenKey,
  options: DeleteOptions,
  announce: AnnounceKey,
): Promise<Deleted> {
  const { storage } = bucket;
  const id = storage.newId();
  const isJudged = hasCondition(options);
  let entry: MarkerEntry | undefined;
  const added = await bucket.append(
    key,
    open,
    async (newest) => {
      const current = isJudged ? await findCurrent(open, newest) : undefined;
      if (current === "replaced") return retry;
      mustMeetConditions(key, current, options);
      const [config, isNull] = [bucket.state.number, bucket.settings.versioning !== "enabled"];
      // Staged once, unless the settings change.
      if (entry?.config !== config) entry = { kind: "marker", id, key, config, atMs: storage.nowMs(), isNull };
      return { add: { entry } };
    },
    { isJudged, announce: (incarnation) => announce(bucket, key, incarnation) },
  );
  if (added === undefined || entry === undefined) throw new Error("A delete marker is always added.");
  return { key, versionId: versionIdOf({ slot: added.number, entry }), deleteMarker: true };
}

/**
 * Removes the version with this id. Without an id, removes the null version, which is the only
 * version of a key in a bucket without versioning.
 */
async function removeVersion(
  bucket: OpenBucket,
  key: string,
  open: OpenKey,
  options: DeleteOptions,
): Promise<Deleted | "versions are kept"> {
  const { versionId, bypassGovernance = false } = options;
  const { storage } = bucket;
  const id = storage.newId();
  let removed: KeyVersion | undefined;
  let damaged: readonly DamagedSlot[] = [];
  const areKept = (): boolean => versionId === undefined && bucket.settings.versioning !== "off";
  const head = await bucket.append(key, open, async (newest) => {
    // Versioning was enabled since the deletion began, and the key already has an entry under the
    // new settings: from there on, the null version is kept.
    if (areKept()) return nothing;
    const content = newest === undefined ? noContent : await open.history.read(newest);
    if (content === undefined) return retry;
    if (hasCondition(options)) mustMeetConditions(key, mustBeReadable(currentIn(content)), options);
    removed = content.versions.find((each) =>
      versionId === undefined ? each.entry.isNull : versionIdOf(each) === versionId,
    );
    damaged = findDamaged(content, versionId);
    const slots = [...(removed === undefined ? [] : [removed]), ...damaged].map(({ slot }) => slot);
    if (slots.length === 0) return nothing;
    if (removed !== undefined) mustNotBeRetained(removed, storage.nowMs(), bypassGovernance);
    mustBeDeletable(bucket, removed, damaged);
    const [config, current] = [bucket.state.number, currentSlotWithout(content, slots)];
    return { add: { entry: { kind: "remove", id, key, config, atMs: storage.nowMs(), slots, current } } };
  });
  if (head === undefined && areKept()) return "versions are kept";
  const named = versionId === undefined ? {} : { versionId };
  if (head === undefined) return { key, ...named, deleteMarker: false };
  for (const each of damaged) await coverDamaged(bucket, open, head, each);
  if (removed !== undefined) await eraseBody(bucket, open, head, removed);
  return { key, ...named, deleteMarker: removed?.entry.kind === "marker" };
}

/**
 * Returns the damaged slots that may hold the requested version; all of them without an id, because
 * the bucket keeps no versions.
 */
function findDamaged(content: KeyContent, versionId: string | undefined): readonly DamagedSlot[] {
  if (versionId === undefined) return content.damaged;
  const found = findDamagedSlotOf(content, versionId);
  return found === undefined ? [] : [found];
}

/**
 * Throws if it is unknown whether a version is retained, because of an unreadable entry. A version
 * that another user or another release can read is not deleted as damaged.
 */
function mustBeDeletable(
  { settings }: OpenBucket,
  removed: KeyVersion | undefined,
  damaged: readonly DamagedSlot[],
): void {
  if (settings.objectLock && removed?.doubt !== undefined) throw removed.doubt.entry.error;
  for (const { entry } of damaged)
    if (settings.objectLock || !isHoldfastError(entry.error, "CORRUPT")) throw entry.error;
}

/**
 * Erases the bytes of a removed version. A stub replaces the content of the slot, and the name
 * stays. Two kinds of slots stay as they are:
 * - The first slot of a block: a late stub would restore a name that must never be created again.
 * - Every slot on a share: its client may remove the name before it renames the stub (decision
 *   112).
 */
export async function eraseBody(
  bucket: OpenBucket,
  { chain }: OpenKey,
  head: KeyHead,
  { slot, entry }: KeyVersion,
): Promise<void> {
  if (entry.kind !== "put") return;
  await discardBody(bucket, entry);
  if (hasBodyFiles(entry)) return;
  const { id, key, config, atMs, isNull } = entry;
  await coverSlot(bucket, chain, head, slot, { kind: "stub", id, key, config, atMs, isNull });
}

/**
 * Like `eraseBody`, for a damaged slot that was removed, so that no reader finds it any more. A
 * slot that may have changed other versions stays: it marks them as doubtful.
 */
export async function coverDamaged(
  bucket: OpenBucket,
  { chain }: OpenKey,
  head: AddedHead,
  { slot, entry }: DamagedSlot,
): Promise<void> {
  if (mayChangeOthers(entry)) return;
  const { id = bucket.storage.newId(), isNull = false } = entry.legible;
  const { key, atMs } = head.entry;
  await coverSlot(bucket, chain, head, slot, { kind: "stub", id, key, config: 0, atMs, isNull });
}

async function coverSlot(
  bucket: OpenBucket,
  chain: OpenKey["chain"],
  head: KeyHead,
  slot: number,
  stub: StubEntry,
): Promise<void> {
  const { staging } = bucket.storage;
  if (chain.names.isFirst(slot) || staging.disk.volume.kind !== "local") return;
  // The content of the stub is synced, the rename is not: after a power cut, the slot has either
  // the removed version or the stub, never a torn file.
  let temp: string | undefined;
  try {
    temp = await stage(staging, encodeEntry(stub), { sync: bucket.storage.isSynced });
    await renameOnce(staging.disk, temp, chain.names.slotPath(head.incarnation, slot));
  } catch (error) {
    if (temp !== undefined) await discard(staging, temp);
    // An error is ignored: another process on Windows has the slot open, the slot was removed with
    // its key, or the disk is full. The version is removed in any case; only its bytes stay until
    // the key is removed.
    if (!isHoldfastError(error)) throw error;
  }
}

export function hasCondition({ ifMatch, ifSize, ifLastModified }: DeleteOptions): boolean {
  return [ifMatch, ifSize, ifLastModified].some((each) => each !== undefined);
}

/** Throws PRECONDITION_FAILED. The conditions concern the current version. */
export function mustMeetConditions(key: string, current: KeyVersion | undefined, options: DeleteOptions): void {
  if (!hasCondition(options)) return;
  const { ifMatch = "*", ifSize, ifLastModified } = options;
  mustMatch(key, current, ifMatch);
  if (current?.entry.kind !== "put") return;
  const { size, atMs } = current.entry;
  if (ifSize !== undefined && size !== ifSize) throw failed(key, current, `it has ${size} bytes, not ${ifSize}`);
  if (ifLastModified !== undefined && secondOf(atMs) !== secondOf(ifLastModified.getTime()))
    throw failed(key, current, `it was not written at ${ifLastModified.toISOString()}`);
}

/** Clients know times in whole seconds. */
function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** True if the version must stay, unless governance is bypassed. */
export function isRetained({ retention, legalHold }: KeyVersion, nowMs: number): boolean {
  return legalHold === true || (retention !== undefined && retention.untilMs > nowMs);
}

/** Throws RETAINED. */
export function mustNotBeRetained(version: KeyVersion, nowMs: number, bypassGovernance: boolean): void {
  const { entry, retention, legalHold } = version;
  const { key } = entry;
  const what = `The version ${versionIdOf(version)} of ${JSON.stringify(key)}`;
  if (legalHold === true)
    throw holdfastError("RETAINED", `${what} is under a legal hold. Lift the hold first.`, { key });
  if (retention === undefined || retention.untilMs <= nowMs) return;
  if (retention.mode === "governance" && bypassGovernance) return;
  const until = new Date(retention.untilMs);
  const message = `${what} is retained until ${until.toISOString()} (${retention.mode}). Wait until then${retention.mode === "governance" ? ", or set bypassGovernance" : ""}.`;
  throw holdfastError("RETAINED", message, { key, until });
}
