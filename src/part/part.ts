// Opens a part, alone or from a store: which ground it has, and how a process joins it.
//
// The first record of a part names its ground by a path relative to the part. A process that opens
// the part alone follows it, so that it meets the same holders as a process that opened the store.
// A part without such a path has its own ground, in `.holdfast`.
import { posix } from "node:path";
import { isThere, parentOf } from "../durable/publish/directory.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { GroundLayout } from "../durable/liveness/holder-record.ts";
import { isStore, StoreLayout } from "../durable/store/store-record.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { textOf } from "../format/decoding.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import type { Ports } from "../ports/ports.ts";
import { findStoreAround, directoryIn, type PartKind } from "./location.ts";

/** The fields that the first record of every part has. */
export interface PartRecord {
  readonly id: string;
  /** Path of the ground, relative to the directory of the part. Absent: the part has its own. */
  readonly ground?: string;
}

/** Decodes the ground path in a record's body. */
export function decodeGround(ground: unknown): Pick<PartRecord, "ground"> {
  return ground === undefined ? {} : { ground: textOf(ground) };
}

/** The directory of a part. Symbolic links must be resolved: the part's name in the ground depends on the path. */
export interface PartDirectory {
  readonly ports: Ports;
  readonly directory: string;
  /** The ground of the store that opens the part. Absent: the part is opened alone. */
  readonly ground?: Ground | undefined;
}

export interface JoinOptions {
  readonly leaseMs?: number | undefined;
  /** The record of the part; undefined before the part is created, or if the record is unreadable. */
  readonly known?: PartRecord | undefined;
  /** True if the part can be read without joining its ground. Default: true if its record is known. */
  readonly isReadable?: boolean | undefined;
  /** Creates everything that the part needs besides its ground. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

export interface JoinedGround {
  readonly ground: Ground;
  /** False if the ground belongs to a store that opens the part: it is closed with the store. */
  readonly ownsGround: boolean;
}

/**
 * Joins the ground of a part. If the disk is not writable, a readable part gets a ground that the first write joins;
 * any other part throws NO_PERMISSION. Throws NOT_A_STORE for a part that was copied out of its store.
 */
export async function joinGround(kind: PartKind, part: PartDirectory, options: JoinOptions): Promise<JoinedGround> {
  const { leaseMs, known, isReadable = known !== undefined, prepare } = options;
  const { ports, directory, ground: shared } = part;
  const path = known === undefined ? await chooseGround(kind, part) : groundPath(directory, known);
  const isOwn = path === ownGround(directory);
  const [open, look] =
    shared?.layout.directory === path
      ? [async () => shared, async () => shared]
      : [
          // Do not create the ground of a store that is gone: no other process would look for it.
          async () =>
            await Ground.open(ports, path, { leaseMs, create: isOwn || (await isStore(ports.disk, parentOf(path))) }),
          async () => await Ground.openUnjoined(ports, path, { leaseMs }),
        ];
  const join = async (): Promise<Ground> => {
    await prepare?.();
    return await open();
  };
  try {
    const ground = await joinOrOpenReadOnly(kind, directory, join, isReadable ? look : undefined);
    return { ground, ownsGround: ground !== shared };
  } catch (error) {
    if (isOwn || !isHoldfastError(error, "NOT_A_STORE")) throw error;
    throw orphaned(kind, directory, path, error);
  }
}

/** Returns the ground fields for the record of a part in `directory`. */
export function recordedGround(directory: string, { layout }: Ground): Pick<PartRecord, "ground"> {
  if (layout.directory === ownGround(directory)) return {};
  return { ground: posix.relative(directory, layout.directory) };
}

function groundPath(directory: string, { ground }: PartRecord): string {
  return ground === undefined ? ownGround(directory) : posix.join(directory, ground);
}

function ownGround(directory: string): string {
  return `${directory}/.holdfast`;
}

/** For a part without a record. Throws INVALID_PATH for the directory of a store itself. */
async function chooseGround(kind: PartKind, { ports: { disk }, directory, ground }: PartDirectory): Promise<string> {
  if (ground !== undefined) return ground.layout.directory;
  await mustNotBeStore(disk, kind, directory);
  // A part that lost its record keeps its ground.
  if (await isThere(disk, new GroundLayout(ownGround(directory)).groundRecord)) return ownGround(directory);
  return (await findStoreAround(disk, kind, directory))?.ground ?? ownGround(directory);
}

async function mustNotBeStore(disk: Disk, kind: PartKind, path: string): Promise<void> {
  const { what } = kind;
  const above = new StoreLayout(parentOf(path));
  const intended = directoryIn(above, kind, "main");
  if (path !== intended && [above.ground, ...above.rooms].includes(path) && (await isStore(disk, above.directory))) {
    const message = `${path} is a folder of the store ${above.directory}, and no ${what} can be made in it. Name the directory of the ${what}: ${intended}.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
  if (!(await isStore(disk, path))) return;
  const message =
    `${path} is a store, and no ${what} can be made in its own directory. ` +
    `Open it with openStore, or name the directory of the ${what}: ${directoryIn(new StoreLayout(path), kind, "main")}.`;
  throw holdfastError("INVALID_PATH", message, { path });
}

/**
 * Returns the result of `join`, or of `look` if the disk is not writable. Without a `look` it throws NO_PERMISSION,
 * which says what to do.
 */
export async function joinOrOpenReadOnly<T>(
  { what }: Pick<PartKind, "what">,
  directory: string,
  join: () => Promise<T>,
  look: (() => Promise<T>) | undefined,
): Promise<T> {
  try {
    return await join();
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    if (look === undefined) throw explainUnwritable(what, directory, error);
    return await look();
  }
}

function explainUnwritable(what: string, path: string, error: unknown): unknown {
  if (!isHoldfastError(error, "NO_PERMISSION")) return error;
  const message =
    `This process may not write to ${path}, so it can neither create a new ${what} there nor write to one. Let this ` +
    `user write to the directory and everything in it. Nothing was changed. The first call that failed: ${error.message}.`;
  return holdfastError("NO_PERMISSION", message, { path }, error);
}

function orphaned({ what, room }: PartKind, path: string, ground: string, cause: unknown): Error {
  const message =
    `The ${what} in ${path} is a part of a store, and its store is missing: ${ground} does not exist. Was it copied ` +
    `alone? Copy the whole store, or create a new store with openStore and move ${path} into its folder ${room}.`;
  return holdfastError("NOT_A_STORE", message, { path }, cause);
}
