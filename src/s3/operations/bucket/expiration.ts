// The header x-amz-expiration: when a lifecycle rule will expire an object.
import { expiryMs, type Bucket, type LifecycleRule, type ObjectVersion } from "../../../objects/index.ts";

type Tags = Readonly<Record<string, string>>;

/** `version` must be the current one. `tags`: its tags, if already known. */
export async function expirationHeader(
  bucket: Bucket,
  version: ObjectVersion,
  tags?: Tags,
): Promise<Record<string, string>> {
  const rules = (bucket.knownConfig()?.lifecycle ?? []).filter((rule) => matches(rule, version));
  if (rules.length === 0) return {};
  const hasTagged = rules.some((rule) => rule.tags !== undefined);
  const { key, versionId } = version;
  const own = tags ?? (hasTagged && version.tagCount !== undefined ? await bucket.tags(key, { versionId }) : {});
  const due = rules
    .filter((rule) => Object.entries(rule.tags ?? {}).every(([name, value]) => own[name] === value))
    .map(({ id = "", ...rule }) => ({ id, atMs: expiryMs(rule, version.lastModified.getTime()) ?? Infinity }))
    .filter(({ atMs }) => atMs !== Infinity);
  const [first] = due.sort((one, other) => one.atMs - other.atMs);
  if (first === undefined) return {};
  const id = encodeURIComponent(first.id);
  return { "x-amz-expiration": `expiry-date="${new Date(first.atMs).toUTCString()}", rule-id="${id}"` };
}

function matches(
  { prefix = "", bytesAbove = -1, bytesBelow = Infinity }: LifecycleRule,
  version: ObjectVersion,
): boolean {
  return version.key.startsWith(prefix) && version.size > bytesAbove && version.size < bytesBelow;
}
