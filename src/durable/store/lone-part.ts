// A part that was created alone, outside a store: its kind, and its folder in a store.
import type { Disk } from "../../ports/disk.ts";
import { isThere } from "../publish/directory.ts";
import { type PartFolder } from "./store-record.ts";

export interface LonePart {
  /** For people: "an event log". */
  readonly what: string;
  /** The file that identifies it. */
  readonly trace: string;
  /** The folder of a store in which such a part belongs. */
  readonly room: PartFolder | "files";
}

const loneParts: readonly LonePart[] = [
  { what: "an event log", trace: "log.json", room: "events" },
  { what: "a hand-off box", trace: "box.json", room: "handoff" },
  { what: "an object store", trace: "objects.json", room: "objects" },
  // Must be last, because logs keep their leases in the same directory.
  { what: "path locks", trace: ".holdfast/names.json", room: "files" },
];

/** Returns the kind of part that `directory` itself is. */
export async function findLonePart(disk: Disk, directory: string): Promise<LonePart | undefined> {
  for (const part of loneParts) if (await isThere(disk, `${directory}/${part.trace}`)) return part;
  return undefined;
}
