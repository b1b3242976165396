// Changes the tags, retention, legal hold or ACL of a version without adding a new one.
import { holdfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { retry } from "../key/key-chain.ts";
import { currentIn, currentSlotWithout, noContent, type KeyContent, type KeyVersion } from "../key/key-versions.ts";
import type { ChangeEntry, StoredRetention } from "../model/entry.ts";
import { findDamagedSlotOf, noSuchKey, noSuchVersion, versionIdOf, mustBeReadable } from "./find-version.ts";

export type VersionChange = Pick<ChangeEntry, "tags" | "retention" | "legalHold" | "acl">;

export interface ChangeRequest {
  readonly key: string;
  readonly versionId: string | undefined;
  readonly change: VersionChange;
  /** True if only a bucket with object lock may have this change. */
  readonly needsObjectLock?: boolean | undefined;
  /** Throws if this version must not be changed like this. */
  readonly check?: ((version: KeyVersion, nowMs: number) => void) | undefined;
}

/** Throws NO_SUCH_KEY or NO_SUCH_VERSION. */
export async function changeVersion(bucket: OpenBucket, request: ChangeRequest): Promise<void> {
  const { key, versionId, change, check } = request;
  if (request.needsObjectLock === true) bucket.mustLock();
  const { storage } = bucket;
  const id = storage.newId();
  await bucket.useKey(key, async (open) => {
    await bucket.append(key, open, async (newest) => {
      const content = newest === undefined ? noContent : await open.history.read(newest);
      if (content === undefined) return retry;
      const found = versionIn(content, versionId);
      if (found === undefined) throw versionId === undefined ? noSuchKey(key) : noSuchVersion(key, versionId);
      if (found.entry.kind === "marker") throw noSuchKey(key, versionIdOf(found));
      check?.(found, storage.nowMs());
      const { slot } = found;
      const current = currentSlotWithout(content, []);
      const entry = {
        kind: "change",
        id,
        key,
        config: bucket.state.number,
        atMs: storage.nowMs(),
        slot,
        current,
      } as const;
      return { add: { entry: { ...entry, ...change } } };
    });
  });
}

/** Throws if an unreadable entry may be the requested version. */
function versionIn(content: KeyContent, versionId: string | undefined): KeyVersion | undefined {
  const damaged = versionId === undefined ? undefined : findDamagedSlotOf(content, versionId);
  if (damaged !== undefined) throw damaged.entry.error;
  if (versionId === undefined) return mustBeReadable(currentIn(content));
  return content.versions.find((each) => versionIdOf(each) === versionId);
}

/**
 * Throws RETAINED if the change would weaken a retention or change its mode without permission, and
 * CORRUPT if the retention is unknown.
 */
export function mustMayRetain(
  { entry: { key }, retention: before, doubt }: KeyVersion,
  after: StoredRetention | undefined,
  nowMs: number,
  bypassGovernance: boolean,
): void {
  if (doubt !== undefined) throw doubt.entry.error;
  if (before === undefined || before.untilMs <= nowMs) return;
  const isExtended = after !== undefined && after.untilMs >= before.untilMs && after.mode === before.mode;
  if (isExtended || (before.mode === "governance" && bypassGovernance)) return;
  const until = new Date(before.untilMs);
  const message = `The retention of ${JSON.stringify(key)} until ${until.toISOString()} (${before.mode}) cannot be weakened or switched to another mode. Extend it, or wait.`;
  throw holdfastError("RETAINED", message, { key, until });
}
