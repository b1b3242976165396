// Keys that are on the disk and that no listing shows: those of a bucket whose configuration was lost,
// and those that a repair has moved aside.
import type { Disk } from "../../ports/disk.ts";
import { namesIn } from "../listing/walk-keys.ts";
import type { Buckets } from "./buckets.ts";
import { IncarnationLayout } from "./layout.ts";
import type { ObjectsPlace } from "./objects-place.ts";
import type { OpenBucket } from "./open-bucket.ts";

export interface LostKeys {
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
}

/**
 * Keys of a bucket whose configuration does not name them: it was lost. An incarnation has keys only
 * from when it was named until it is deleted, and with it they go.
 */
export async function findLost(
  buckets: Pick<Buckets, "find">,
  { disk, layout }: ObjectsPlace,
  name: string,
): Promise<LostKeys | undefined> {
  const directory = layout.bucket(name);
  for (const incarnation of await namesIn(disk, directory)) {
    const own = new IncarnationLayout(directory, incarnation);
    if (!(await hasKeys(disk, own))) continue;
    // Named or deleted in the meantime: asked in this order.
    const state = (await buckets.find(name))?.state;
    if (state?.incarnation === incarnation || !(await hasKeys(disk, own))) continue;
    const what = `${own.directory} has keys of the bucket ${name}, and ${layout.config(name)} does not name it: the configuration of the bucket was lost.`;
    return { path: own.directory, what, remedy: `Restore ${layout.config(name)} from a backup.` };
  }
  return undefined;
}

async function hasKeys(disk: Disk, { keys }: IncarnationLayout): Promise<boolean> {
  if (!(await disk.canOpen(keys))) return false;
  for (const shard of await namesIn(disk, keys)) if ((await namesIn(disk, `${keys}/${shard}`)).length > 0) return true;
  return false;
}

/** Whether a repair has moved keys of this bucket away. */
export async function hasAside({ place: { disk }, layout: { aside } }: OpenBucket): Promise<boolean> {
  // Makes the client of a share ask for the directory anew.
  if (disk.volume.kind !== "local") await disk.canOpen(aside);
  return (await namesIn(disk, aside)).length > 0;
}
