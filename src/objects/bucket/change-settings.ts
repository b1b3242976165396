// Changes the settings of a bucket. The check that a change is allowed is part of the
// compare-and-swap.
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { checkSettings } from "../model/arguments.ts";
import { checkLifecycle } from "../model/lifecycle.ts";
import type { BucketConfig } from "../model/object.ts";
import { versionings } from "./bucket-config.ts";
import { noSuchBucket, type OpenBucket } from "./open-bucket.ts";

const settingNames: OptionNames<BucketConfig> = {
  versioning: true,
  objectLock: true,
  defaultRetention: true,
  lifecycle: true,
  tags: true,
  documents: true,
};

/**
 * Changes one document, or removes it if the value is undefined. Concurrent changes of other
 * documents are kept.
 */
export interface DocumentChange {
  readonly name: string;
  readonly text: string | undefined;
}

/** Throws NO_SUCH_BUCKET, or a TypeError for a change that is never allowed. */
export async function changeSettings(
  bucket: OpenBucket,
  change: Partial<BucketConfig>,
  document?: DocumentChange,
): Promise<void> {
  checkChange(change);
  await bucket.mustBeThere();
  const { incarnation } = bucket.state;
  let isGone = false;
  await bucket.changeConfig((state) => {
    isGone = state.incarnation !== incarnation;
    return isGone ? undefined : { ...state, settings: changedSettings(state.settings, change, document) };
  });
  if (isGone) throw noSuchBucket(bucket.name);
}

/** Throws a TypeError or RangeError for a change that makes no sense in any bucket. */
export function checkChange(change: Partial<BucketConfig>): void {
  checkOptions("setConfig", change as BucketConfig, settingNames);
  if (change.versioning !== undefined && !versionings.includes(change.versioning))
    throw new TypeError(`versioning is one of ${versionings.join(", ")}, not ${change.versioning as string}.`);
  if (change.lifecycle !== undefined) checkLifecycle(change.lifecycle);
  checkSettings("setConfig", change);
}

/** Returns the settings after a change. Throws a TypeError for a change that these settings forbid. */
export function changedSettings(
  before: BucketConfig,
  change: Partial<BucketConfig>,
  document?: DocumentChange,
): BucketConfig {
  const changed = { ...before, ...settingsIn(change) };
  const settings = document === undefined ? changed : withDocument(changed, document);
  mustBeAllowed(before, settings);
  return settings;
}

/** A setting that is undefined keeps its value, except a default retention, which is removed. */
function settingsIn(change: Partial<BucketConfig>): Partial<BucketConfig> {
  const given = Object.entries(structuredClone(change));
  return Object.fromEntries(given.filter(([name, value]) => value !== undefined || name === "defaultRetention"));
}

function withDocument(settings: BucketConfig, { name, text }: DocumentChange): BucketConfig {
  const { [name]: _before, ...others } = settings.documents;
  return { ...settings, documents: text === undefined ? others : { ...others, [name]: text } };
}

function mustBeAllowed(before: BucketConfig, after: BucketConfig): void {
  if (before.versioning !== "off" && after.versioning === "off")
    throw new TypeError("Versioning cannot be turned off again. Suspend it instead.");
  if (before.objectLock && !after.objectLock)
    throw new TypeError("Object lock cannot be switched off: versions may be retained.");
  if (after.objectLock && after.versioning !== "enabled")
    throw new TypeError("Object lock needs versioning to be enabled.");
  if (after.defaultRetention !== undefined && !after.objectLock)
    throw new TypeError("A default retention needs objectLock.");
}
