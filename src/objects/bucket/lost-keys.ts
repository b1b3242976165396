// Lost keys are on the disk but in no listing: keys of a bucket whose configuration was lost, and
// keys that a repair moved aside.
import { listIfThere } from "../../durable/publish/directory.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Buckets } from "./buckets.ts";
import { IncarnationLayout } from "./layout.ts";
import type { ObjectsStorage } from "./objects-storage.ts";
import type { OpenBucket } from "./open-bucket.ts";

export interface LostKeys {
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
}

/**
 * Finds keys of an incarnation that the bucket's configuration does not name: the configuration was
 * lost. An incarnation has keys only after the configuration named it and before it is deleted.
 */
export async function findLost(
  buckets: Pick<Buckets, "find">,
  { disk, layout }: ObjectsStorage,
  name: string,
): Promise<LostKeys | undefined> {
  const directory = layout.bucket(name);
  for (const incarnation of await listIfThere(disk, directory)) {
    const own = new IncarnationLayout(directory, incarnation);
    if (!(await hasKeys(disk, own))) continue;
    // The incarnation may have been named or deleted meanwhile. So the configuration is read first,
    // and then the keys are checked again.
    const state = (await buckets.find(name))?.state;
    if (state?.incarnation === incarnation || !(await hasKeys(disk, own))) continue;
    const what = `${own.directory} contains keys of the bucket ${name}, but ${layout.config(name)} does not name it: the configuration of the bucket was lost.`;
    return { path: own.directory, what, remedy: `Restore ${layout.config(name)} from a backup.` };
  }
  return undefined;
}

async function hasKeys(disk: Disk, { keys }: IncarnationLayout): Promise<boolean> {
  if (!(await disk.canOpen(keys))) return false;
  for (const shard of await listIfThere(disk, keys))
    if ((await listIfThere(disk, `${keys}/${shard}`)).length > 0) return true;
  return false;
}

/** True if a repair moved keys of this bucket aside. */
export async function hasAside({ storage: { disk }, layout: { aside } }: OpenBucket): Promise<boolean> {
  // Forces the client of a share to revalidate its cached directory.
  if (disk.volume.kind !== "local") await disk.canOpen(aside);
  return (await listIfThere(disk, aside)).length > 0;
}
