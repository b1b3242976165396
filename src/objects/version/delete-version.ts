// Deleting: a delete marker where versions are kept, or the removal of a version for good.
import { renameOnce } from "../../durable/publish/publish.ts";
import { discard, stage } from "../../durable/publish/staging.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { KeyVersion } from "../key/key-history.ts";
import { encodeEntry, type MarkerEntry, type RemoveEntry, type StubEntry } from "../model/entry.ts";
import type { Deleted, DeleteOptions } from "../model/object-store.ts";
import { appendEntry } from "./append-entry.ts";
import { hasBodyFiles } from "./body-parts.ts";
import { findCurrent, versionIdOf } from "./find-version.ts";
import { failed, mustMatch } from "./preconditions.ts";
import type { Announce } from "./put-version.ts";
import { discardBody } from "./stage-body.ts";

/** RETAINED; PRECONDITION_FAILED with `ifMatch`. An object that is not there is deleted already. */
export async function deleteObject(
  bucket: OpenBucket,
  key: string,
  options: DeleteOptions,
  announce: Announce,
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
  announce: Announce,
): Promise<Deleted> {
  const { place } = bucket;
  const id = place.newId();
  const judge = async (head: KeyHead | undefined): Promise<"go on" | "again"> => {
    const current = await findCurrent(open, head);
    if (current !== "again") mustMeetConditions(key, current, options);
    return current === "again" ? current : "go on";
  };
  const make = (): MarkerEntry => ({
    kind: "marker",
    id,
    key,
    config: bucket.state.number,
    atMs: place.nowMs(),
    isNull: bucket.settings.versioning !== "enabled",
  });
  const isJudged = hasCondition(options);
  const added = await appendEntry(
    bucket,
    key,
    open,
    { judge: isJudged ? judge : undefined, make },
    { isJudged, announce: (incarnation) => announce(bucket, key, incarnation) },
  );
  if (added === undefined) throw new Error("A delete marker is always added.");
  const { entry, number: slot } = added.head;
  return { key, versionId: versionIdOf({ slot, entry: entry as MarkerEntry }), deleteMarker: true };
}

/** The version with this id; without one, the null version, which is all that a bucket without versions has. */
async function removeVersion(
  bucket: OpenBucket,
  key: string,
  open: OpenKey,
  options: DeleteOptions,
): Promise<Deleted | "versions are kept"> {
  const { versionId, bypassGovernance = false } = options;
  const { place } = bucket;
  const id = place.newId();
  let removed: KeyVersion | undefined;
  let current = 0;
  const areKept = (): boolean => versionId === undefined && bucket.settings.versioning !== "off";
  const judge = async (head: KeyHead | undefined): Promise<"go on" | "again" | undefined> => {
    // The settings have changed since the deletion began, and the key has an entry of the new ones:
    // from there on the null version is kept.
    if (areKept()) return undefined;
    const versions = head === undefined ? [] : await open.history.read(head);
    if (versions === undefined) return "again";
    mustMeetConditions(key, versions.at(-1), options);
    removed = versions.find((each) => (versionId === undefined ? each.entry.isNull : versionIdOf(each) === versionId));
    if (removed === undefined) return undefined;
    mustNotBeRetained(removed, place.nowMs(), bypassGovernance);
    current = versions.filter((each) => each !== removed).at(-1)?.slot ?? 0;
    return "go on";
  };
  const make = (): RemoveEntry => ({
    kind: "remove",
    id,
    key,
    config: bucket.state.number,
    atMs: place.nowMs(),
    slots: removed === undefined ? [] : [removed.slot],
    current,
  });
  const added = await appendEntry(bucket, key, open, { judge, make, isDependent: true });
  if (added === undefined && areKept()) return "versions are kept";
  const named = versionId === undefined ? {} : { versionId };
  if (added === undefined || removed === undefined) return { key, ...named, deleteMarker: false };
  await eraseBody(bucket, open, added.head, removed);
  return { key, ...named, deleteMarker: removed.entry.kind === "marker" };
}

/**
 * Takes the bytes of a version that was removed. The slot keeps its name, under a stub. The first
 * slot of a block stays as it is: a stub that comes late would bring a name back that must never be
 * made again. So does every slot on a share, whose client may take the name away before it gives it
 * to the stub (decision 112).
 */
export async function eraseBody(
  bucket: OpenBucket,
  { chain }: OpenKey,
  head: KeyHead,
  { slot, entry }: KeyVersion,
): Promise<void> {
  if (entry.kind !== "put") return;
  const { staging } = bucket.place;
  await discardBody(bucket, entry);
  if (hasBodyFiles(entry) || chain.names.isFirst(slot) || staging.disk.volume.kind !== "local") return;
  const { id, key, config, atMs, isNull } = entry;
  const stub: StubEntry = { kind: "stub", id, key, config, atMs, isNull };
  // Its content is durable before it has the name of the slot, and the name is not: a power cut leaves
  // the version that was removed, or the stub, and never a torn file.
  let temp: string | undefined;
  try {
    temp = await stage(staging, encodeEntry(stub), { sync: bucket.place.isSynced });
    await renameOnce(staging.disk, temp, chain.names.slotPath(head.incarnation, slot));
  } catch (error) {
    if (temp !== undefined) await discard(staging, temp);
    // Open in another process on Windows, gone with its key, or no room for a stub. The version is
    // removed in any case: only its bytes stay until the key goes.
    if (!isHoldfastError(error)) throw error;
  }
}

function hasCondition({ ifMatch, ifSize, ifLastModified }: DeleteOptions): boolean {
  return [ifMatch, ifSize, ifLastModified].some((each) => each !== undefined);
}

/** PRECONDITION_FAILED. They are about the current version. */
function mustMeetConditions(key: string, current: KeyVersion | undefined, options: DeleteOptions): void {
  if (!hasCondition(options)) return;
  const { ifMatch = "*", ifSize, ifLastModified } = options;
  mustMatch(key, current, ifMatch);
  if (current?.entry.kind !== "put") return;
  const { size, atMs } = current.entry;
  if (ifSize !== undefined && size !== ifSize) throw failed(key, current, `it has ${size} bytes, not ${ifSize}`);
  if (ifLastModified !== undefined && secondOf(atMs) !== secondOf(ifLastModified.getTime()))
    throw failed(key, current, `it was not written at ${ifLastModified.toISOString()}`);
}

/** Times that clients know are of whole seconds. */
function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}

/** Whether it must stay, unless governance is bypassed. */
export function isRetained({ retention, legalHold }: KeyVersion, nowMs: number): boolean {
  return legalHold === true || (retention !== undefined && retention.untilMs > nowMs);
}

/** RETAINED. */
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
