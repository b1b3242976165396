// Lifecycle rules: checks the rules that a caller passes, and decides what is due in one key at one
// moment.
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import type { LifecycleRule } from "./object.ts";

const dayMs = 86_400_000;
const rulesMax = 1000;

const ruleNames: OptionNames<LifecycleRule> = {
  id: true,
  prefix: true,
  tags: true,
  bytesAbove: true,
  bytesBelow: true,
  expireDays: true,
  expireAtMs: true,
  noncurrent: true,
  abortUploadsDays: true,
  removeLoneMarkers: true,
};

/** The properties of a version that rules depend on. */
export interface AgingVersion {
  readonly atMs: number;
  readonly isMarker: boolean;
  readonly bytes: number;
  readonly tags: Readonly<Record<string, string>>;
}

/** The actions that are due in a key. Numbers are indexes in the list of its versions. */
export interface DueActions {
  /** The current version is due for deletion, like a delete without a version id. */
  readonly isExpired: boolean;
  /** These versions are due for permanent removal. */
  readonly removals: readonly number[];
}

/** Throws TypeError or RangeError. */
export function checkLifecycle(rules: readonly LifecycleRule[]): void {
  if (!Array.isArray(rules)) throw new TypeError("lifecycle must be a list of rules.");
  if (rules.length > rulesMax) throw new RangeError(`A bucket has at most ${rulesMax} lifecycle rules.`);
  for (const rule of rules as readonly LifecycleRule[]) {
    checkKinds(rule);
    checkRule(rule);
  }
}

/** Throws TypeError for a value of the wrong type. */
function checkKinds(rule: LifecycleRule): void {
  if (typeof rule !== "object" || rule === null) throw new TypeError("A lifecycle rule must be an object.");
  const { id, tags, noncurrent, removeLoneMarkers } = rule;
  if (id !== undefined && typeof id !== "string") throw new TypeError("The id of a rule must be a string.");
  if (removeLoneMarkers !== undefined && typeof removeLoneMarkers !== "boolean")
    throw new TypeError("removeLoneMarkers of a rule must be true or false.");
  for (const [name, each] of [
    ["tags", tags],
    ["noncurrent", noncurrent],
  ] as const)
    if (each !== undefined && (typeof each !== "object" || each === null))
      throw new TypeError(`${name} of a rule must be an object.`);
  for (const text of Object.values(tags ?? {}))
    if (typeof text !== "string") throw new TypeError("The tags of a rule must be strings.");
}

function checkRule(rule: LifecycleRule): void {
  checkOptions("A lifecycle rule", rule, ruleNames);
  const { prefix, tags, bytesAbove, bytesBelow, expireDays, expireAtMs } = rule;
  const { noncurrent, abortUploadsDays, removeLoneMarkers } = rule;
  if (prefix !== undefined && typeof prefix !== "string") throw new TypeError("The prefix of a rule must be a string.");
  checkOptions("noncurrent of a lifecycle rule", noncurrent, { days: true, keep: true });
  checkCount("expireDays", expireDays, 1);
  checkCount("expireAtMs", expireAtMs, 0);
  checkCount("bytesAbove", bytesAbove, 0);
  checkCount("bytesBelow", bytesBelow, 1);
  checkCount("abortUploadsDays", abortUploadsDays, 1);
  checkCount("noncurrent.days", noncurrent?.days, 1);
  checkCount("noncurrent.keep", noncurrent?.keep, 0);
  if (noncurrent !== undefined && noncurrent.days === undefined && noncurrent.keep === undefined)
    throw new TypeError("noncurrent of a rule needs days, keep, or both.");
  if ([expireDays, expireAtMs, noncurrent, abortUploadsDays, removeLoneMarkers].every((each) => each === undefined))
    throw new TypeError("A lifecycle rule needs an action: expireDays, noncurrent, abortUploadsDays, …");
  const isOfVersions = [tags, bytesAbove, bytesBelow].some((each) => each !== undefined);
  if (isOfVersions && (abortUploadsDays !== undefined || removeLoneMarkers !== undefined))
    throw new TypeError(
      "Uploads and delete markers have no tags and no size, so a rule for them cannot select by those.",
    );
}

function checkCount(name: string, count: number | undefined, least: number): void {
  if (count === undefined || (Number.isSafeInteger(count) && count >= least)) return;
  throw new RangeError(`${name} of a lifecycle rule must be a whole number from ${least}, not ${String(count)}.`);
}

/** `versions` are ordered from the oldest to the current one. Retention is not considered here. */
export function dueOf(
  rules: readonly LifecycleRule[],
  key: string,
  versions: readonly AgingVersion[],
  nowMs: number,
): DueActions {
  const removals = new Set<number>();
  let isExpired = false;
  for (const rule of rules) {
    if (!key.startsWith(rule.prefix ?? "")) continue;
    if (isCurrentDue(rule, versions, nowMs)) {
      if (isLoneMarker(versions)) removals.add(0);
      else isExpired = true;
    }
    if (rule.removeLoneMarkers === true && isLoneMarker(versions)) removals.add(0);
    for (const index of dueNoncurrent(rule, versions, nowMs)) removals.add(index);
  }
  return { isExpired, removals: [...removals].sort((one, other) => one - other) };
}

/** True if uploads of this key that began at `startedAtMs` are due to be aborted. */
export function isUploadDue(rules: readonly LifecycleRule[], key: string, startedAtMs: number, nowMs: number): boolean {
  return rules.some(
    ({ prefix = "", abortUploadsDays }) =>
      abortUploadsDays !== undefined && key.startsWith(prefix) && startedAtMs + abortUploadsDays * dayMs <= nowMs,
  );
}

/**
 * A delete marker expires only if it is alone and hides nothing. A marker that hides versions never
 * expires.
 */
function isCurrentDue(rule: LifecycleRule, versions: readonly AgingVersion[], nowMs: number): boolean {
  const current = versions.at(-1);
  if (current === undefined || (current.isMarker && !isLoneMarker(versions))) return false;
  const atMs = expiryMs(rule, current.atMs);
  return atMs !== undefined && atMs <= nowMs && matches(current, rule);
}

/**
 * Returns the time at which a rule expires a version that was written at `atMs`, both in
 * milliseconds since 1970: midnight UTC, as in S3. Returns undefined if the rule expires nothing.
 */
export function expiryMs({ expireDays, expireAtMs }: LifecycleRule, atMs: number): number | undefined {
  const byDays = expireDays === undefined ? Infinity : Math.ceil((atMs + expireDays * dayMs) / dayMs) * dayMs;
  const first = Math.min(byDays, expireAtMs ?? Infinity);
  return first === Infinity ? undefined : first;
}

/** The age of a noncurrent version counts from the version that followed it. */
function dueNoncurrent(rule: LifecycleRule, versions: readonly AgingVersion[], nowMs: number): number[] {
  if (rule.noncurrent === undefined) return [];
  const { days = 0, keep = 0 } = rule.noncurrent;
  const due: number[] = [];
  for (let index = versions.length - 2 - keep; index >= 0; index--) {
    const [version, next] = [versions[index], versions[index + 1]];
    if (version === undefined || next === undefined || !matches(version, rule)) continue;
    if (next.atMs + days * dayMs <= nowMs) due.push(index);
  }
  return due;
}

function isLoneMarker(versions: readonly AgingVersion[]): boolean {
  return versions.length === 1 && versions[0]?.isMarker === true;
}

/** A delete marker has no tags and no size. */
function matches(version: AgingVersion, { tags = {}, bytesAbove, bytesBelow }: LifecycleRule): boolean {
  const { isMarker, bytes, tags: own } = version;
  const wanted = Object.entries(tags);
  if (isMarker) return wanted.length === 0 && bytesAbove === undefined && bytesBelow === undefined;
  const isOfSize = bytes > (bytesAbove ?? -1) && bytes < (bytesBelow ?? Infinity);
  return isOfSize && wanted.every(([name, value]) => own[name] === value);
}
