// Where a part is: in a directory of its own, or under its name in a store.
import { posix } from "node:path";
import { isStore, isThere, StoreLayout, type PartRoom } from "../durable/store/store-record.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";

/** What a room of a store has in it. */
export interface PartKind {
  /** For people: "event log". */
  readonly what: string;
  readonly room: PartRoom;
  /** Of one that is there at least one of these names exists. */
  readonly traces: readonly string[];
  /** A store has one of it, which is the room itself. Default false: it has any number, by name. */
  readonly isOnly?: boolean | undefined;
}

export interface PartLocation {
  /** The part's own. */
  readonly directory: string;
  /** Whether a store was asked for, and `directory` was found in it. */
  readonly isInStore: boolean;
  /** Whether a part was ever made there. */
  readonly isThere: boolean;
}

/** Looks only, and makes nothing. INVALID_NAME. */
export async function locatePart(disk: Disk, kind: PartKind, path: string, name: string): Promise<PartLocation> {
  const isInStore = await isStore(disk, path);
  const directory = isInStore ? placeIn(new StoreLayout(path), kind, name) : path;
  return { directory, isInStore, isThere: await hasPart(disk, kind, directory) };
}

/**
 * The directories of the parts in the store at `path`; `path` itself where a part is there. Makes
 * nothing.
 */
export async function listParts(disk: Disk, kind: PartKind, path: string): Promise<string[]> {
  if (!(await isStore(disk, path))) return (await hasPart(disk, kind, path)) ? [path] : [];
  const room = `${path}/${kind.room}`;
  if (kind.isOnly === true) return (await hasPart(disk, kind, room)) ? [room] : [];
  const found: string[] = [];
  for (const name of (await namesIn(disk, room)).sort())
    if (await hasPart(disk, kind, `${room}/${name}`)) found.push(`${room}/${name}`);
  return found;
}

async function namesIn(disk: Disk, directory: string): Promise<string[]> {
  try {
    return await disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

async function hasPart(disk: Disk, { traces }: PartKind, directory: string): Promise<boolean> {
  for (const name of traces) if (await isThere(disk, `${directory}/${name}`)) return true;
  return false;
}

/** Where the part of that name is in a store. */
export function placeIn(store: StoreLayout, { room, isOnly = false }: PartKind, name: string): string {
  return isOnly ? `${store.directory}/${room}` : store.part(room, name);
}

/** The store that `directory` is a part of by its place, whether the part is there or not. */
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
