// Changing the settings of a bucket: what is allowed, decided by the swap itself.
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { checkSettings } from "../model/arguments.ts";
import { checkLifecycle } from "../model/lifecycle.ts";
import type { BucketConfig } from "../model/object-store.ts";
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

/** One document, whatever is changed about the others at the same time. Undefined removes it. */
export interface DocumentChange {
  readonly name: string;
  readonly text: string | undefined;
}

/** NO_SUCH_BUCKET. TypeError for a change that a bucket never makes. */
export async function changeSettings(
  bucket: OpenBucket,
  change: Partial<BucketConfig>,
  document?: DocumentChange,
): Promise<void> {
  checkOptions("setConfig", change as BucketConfig, settingNames);
  if (change.versioning !== undefined && !versionings.includes(change.versioning))
    throw new TypeError(`versioning is one of ${versionings.join(", ")}, not ${change.versioning as string}.`);
  if (change.lifecycle !== undefined) checkLifecycle(change.lifecycle);
  checkSettings("setConfig", change);
  await bucket.mustBeThere();
  const { incarnation } = bucket.state;
  let isGone = false;
  await bucket.changeConfig((state) => {
    isGone = state.incarnation !== incarnation;
    if (isGone) return undefined;
    const changed = { ...state.settings, ...settingsIn(change) };
    const settings = document === undefined ? changed : withDocument(changed, document);
    mustBeAllowed(state.settings, settings);
    return { ...state, settings };
  });
  if (isGone) throw noSuchBucket(bucket.name);
}

/** What is undefined stays as it is; only a default retention can be taken away. */
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
    throw new TypeError("A bucket that has kept versions cannot go back to keeping none. Suspend versioning instead.");
  if (before.objectLock && !after.objectLock)
    throw new TypeError("Object lock cannot be switched off: versions may be retained.");
  if (after.objectLock && after.versioning !== "enabled")
    throw new TypeError("Object lock needs versioning to be enabled.");
  if (after.defaultRetention !== undefined && !after.objectLock)
    throw new TypeError("A default retention needs objectLock.");
}
