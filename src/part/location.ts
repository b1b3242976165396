// Where a log is: in a directory of its own, or under its name in a store.
import { fileNameOf } from "../format/name.ts";
import type { Disk } from "../ports/disk.ts";

export interface EventsLocation {
  /** The log's own. */
  readonly directory: string;
  /** Whether `directory` was asked for, or found in a store. */
  readonly isInStore: boolean;
  /** Whether a log was ever made there. */
  readonly isThere: boolean;
}

/** Looks only, and makes nothing. INVALID_NAME. */
export async function locate(disk: Disk, path: string, log: string): Promise<EventsLocation> {
  const isInStore = await disk.canOpen(`${path}/holdfast.json`);
  const directory = isInStore ? `${path}/events/${fileNameOf(log)}` : path;
  // A log whose record was lost is still one.
  const isThere = (await disk.canOpen(`${directory}/log.json`)) || (await disk.canOpen(`${directory}/segments`));
  return { directory, isInStore, isThere };
}
