// Changing what is said about a version without a new one: tags, retention, legal hold, access list.
import { holdfastError } from "../../errors.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { KeyVersion } from "../key/key-history.ts";
import type { ChangeEntry, StoredRetention } from "../model/entry.ts";
import { appendEntry } from "./append-entry.ts";
import { noSuchKey, noSuchVersion, versionIdOf } from "./find-version.ts";

export type VersionChange = Pick<ChangeEntry, "tags" | "retention" | "legalHold" | "acl">;

export interface ChangeRequest {
  readonly key: string;
  readonly versionId: string | undefined;
  readonly change: VersionChange;
  /** Throws when this version must not be changed so. */
  readonly check?: ((version: KeyVersion) => void) | undefined;
}

/** NO_SUCH_KEY, NO_SUCH_VERSION. */
export async function changeVersion(bucket: OpenBucket, request: ChangeRequest): Promise<void> {
  const { key, versionId, change, check } = request;
  const { place } = bucket;
  const id = place.newId();
  let slot = 0;
  let current = 0;
  const judge = async (head: KeyHead | undefined, read: Reader): Promise<"go on" | "again"> => {
    const versions = head === undefined ? [] : await read(head);
    if (versions === undefined) return "again";
    const found = versionId === undefined ? versions.at(-1) : versions.find((each) => versionIdOf(each) === versionId);
    if (found === undefined) throw versionId === undefined ? noSuchKey(key) : noSuchVersion(key, versionId);
    if (found.entry.kind === "marker") throw noSuchKey(key, versionIdOf(found));
    check?.(found);
    slot = found.slot;
    current = versions.at(-1)?.slot ?? 0;
    return "go on";
  };
  const make = (): ChangeEntry => ({
    kind: "change",
    id,
    key,
    config: bucket.state.number,
    atMs: place.nowMs(),
    slot,
    current,
    ...change,
  });
  await bucket.useKey(key, async (open) => {
    const read: Reader = (head) => open.history.read(head);
    await appendEntry(bucket, key, open, { judge: (head) => judge(head, read), make, isDependent: true });
  });
}

type Reader = (head: KeyHead) => Promise<readonly KeyVersion[] | undefined>;

/** RETAINED when a retention would become weaker, or another mode, than it may. */
export function mustMayRetain(
  { entry: { key }, retention: before }: KeyVersion,
  after: StoredRetention | undefined,
  nowMs: number,
  bypassGovernance: boolean,
): void {
  if (before === undefined || before.untilMs <= nowMs) return;
  const isExtended = after !== undefined && after.untilMs >= before.untilMs && after.mode === before.mode;
  if (isExtended || (before.mode === "governance" && bypassGovernance)) return;
  const until = new Date(before.untilMs);
  const message = `The retention of ${JSON.stringify(key)} until ${until.toISOString()} (${before.mode}) cannot be made weaker or given another mode. Extend it, or wait.`;
  throw holdfastError("RETAINED", message, { key, until });
}
