// The location of a part: its own directory, or its name in a store.
import { posix } from "node:path";
import { isThere, listIfThere } from "../durable/publish/directory.ts";
import { isStore, StoreLayout, type PartFolder } from "../durable/store/store-record.ts";
import type { Disk } from "../ports/disk.ts";

/** The kind of parts that a folder of a store contains. */
export interface PartKind {
  /** For people: "event log". */
  readonly what: string;
  readonly room: PartFolder;
  /** A part exists if at least one of these names does. */
  readonly traces: readonly string[];
  /** True if a store has only one, which is the folder itself. Default false: any number, by name. */
  readonly isOnly?: boolean | undefined;
}

/** The directory of a part, as `locateEvents`, `locateHandoff` or `locateObjects` found it. */
export interface PartLocation {
  /** The directory of the part itself. */
  readonly directory: string;
  /** True if the given location is a store, and `directory` lies in it. */
  readonly isInStore: boolean;
  /** True if a part exists in `directory`. */
  readonly isThere: boolean;
}

/** Only reads. Throws INVALID_NAME. */
export async function locatePart(disk: Disk, kind: PartKind, path: string, name: string): Promise<PartLocation> {
  const isInStore = await isStore(disk, path);
  const directory = isInStore ? directoryIn(new StoreLayout(path), kind, name) : path;
  return { directory, isInStore, isThere: await hasPart(disk, kind, directory) };
}

/** Lists the directories of the parts in the store at `path`, or `path` itself if it is a part. Only reads. */
export async function listParts(disk: Disk, kind: PartKind, path: string): Promise<string[]> {
  if (!(await isStore(disk, path))) return (await hasPart(disk, kind, path)) ? [path] : [];
  const room = `${path}/${kind.room}`;
  if (kind.isOnly === true) return (await hasPart(disk, kind, room)) ? [room] : [];
  const found: string[] = [];
  for (const name of (await listIfThere(disk, room)).sort())
    if (await hasPart(disk, kind, `${room}/${name}`)) found.push(`${room}/${name}`);
  return found;
}

async function hasPart(disk: Disk, { traces }: PartKind, directory: string): Promise<boolean> {
  for (const name of traces) if (await isThere(disk, `${directory}/${name}`)) return true;
  return false;
}

/** Returns the directory of the part of that name in a store. */
export function directoryIn(store: StoreLayout, { room, isOnly = false }: PartKind, name: string): string {
  return isOnly ? `${store.directory}/${room}` : store.part(room, name);
}

/** Returns the store to which `directory` belongs by its path, whether or not the part exists. */
export async function findStoreAround(
  disk: Disk,
  { room, isOnly = false }: PartKind,
  directory: string,
): Promise<StoreLayout | undefined> {
  const above = isOnly ? directory : posix.dirname(directory);
  if (posix.basename(above) !== room) return undefined;
  const store = posix.dirname(above);
  return (await isStore(disk, store)) ? new StoreLayout(store) : undefined;
}
