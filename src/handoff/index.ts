// The subpath "holdfast/handoff": files passed between programs, claimed once, never lost.
import { openLocation, openNodeFolder, openNodePorts, type OpenedLocation } from "../ports/node/ports.ts";
import { directoryOf, isPostgres } from "../ports/node/location.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { listParts, locatePart, type PartLocation } from "../part/location.ts";
import { readNamed } from "../part/read-chunks.ts";
import type { Body, VerifyOptions, VerifyReport } from "../common.ts";
import { boxPart } from "./box/box-record.ts";
import { openBox } from "./box/open-box.ts";
import { getFolderStat } from "./foreign/folder.ts";
import { checkPublishFile, publishFileOn, type PublishFileOptions } from "./foreign/publish-file.ts";
import { BoxHandoff } from "./handoff.ts";
import type { Handoff, HandoffOptions } from "./model/handoff.ts";
import { checkHandoffOptions } from "./model/handoff-options.ts";
import type { ManifestFile } from "./model/manifest.ts";
import { verifyDirectory } from "./operate/verify/verify.ts";
import type * as engine from "../postgres/by-location.ts";

export type { Body, Cancel, HolderInfo, Problem, Running, VerifyOptions, VerifyReport } from "../common.ts";
export type { PartLocation as HandoffLocation };
export type { Files, PublishOptions } from "./model/arguments.ts";
export type { Manifest, ManifestFile } from "./model/manifest.ts";
export type { Delivery, ParkedTicket, SendTarget } from "./model/delivery.ts";
export type { ConsumeOptions, Handler } from "./model/consume-options.ts";
export type { AdoptedFile, AdoptRule, DeclaredFile, ExportRule } from "./model/foreign-rule.ts";
export type { Published } from "./model/publication.ts";
export type { PublishFileOptions };
export type {
  AdoptOptions,
  AttemptNote,
  Collected,
  Consumer,
  ContentOptions,
  DeadLetter,
  DiscardOptions,
  ExportOptions,
  Handoff,
  HandoffOptions,
  HandoffStats,
  ListOptions,
  OutputFile,
  ReplayOptions,
  TakeOptions,
  TicketInfo,
  TicketState,
} from "./model/handoff.ts";

/**
 * Opens the box in `directory` and creates it if it does not exist. `memory:` opens a new box in
 * memory each time; `postgres://host/db?store=shop#handoff/orders` is a box in a database, for which the
 * package `pg` must be installed. If the disk is not writable, an existing box opens for reading: `find`, `list`,
 * `stats`, `verify`.
 *
 * Throws NOT_A_STORE if there is no box and `create` is false, WRONG_STORE if the box has another
 * id than `id`, INVALID_PATH if `directory` is a file or a store, and CROSS_DEVICE if directories of the box
 * are on different file systems.
 *
 * @example
 * ```ts
 * await using box = await openHandoff("/mnt/shop/orders");
 * await box.publish({ "order.json": JSON.stringify({ sku: "A1" }) }, { key: "order-1" });
 * ```
 */
export async function openHandoff(directory: string | URL, options: HandoffOptions = {}): Promise<Handoff> {
  checkHandoffOptions("openHandoff", options);
  if (isPostgres(directory)) return await (await onPostgres()).openHandoffAt(directory, options);
  const { ports, path } = await openBoxLocation(directory);
  const { create, id, leaseMs } = options;
  const opened = await openBox(ports, path, { create, id, leaseMs, isSynced: options.durability !== "none" });
  return new BoxHandoff(opened, options, openNodeFolder);
}

/**
 * Locates a box. `location` is its directory, or a store that has a box of the given name (default
 * "main"). Creates nothing. Throws INVALID_NAME.
 */
export async function locateHandoff(
  location: string | URL,
  { box = "main" }: { box?: string | undefined } = {},
): Promise<PartLocation> {
  if (isPostgres(location)) return await (await onPostgres()).locateHandoffAt(location, box);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, boxPart, path, box);
}

/**
 * Returns the directories of all boxes of the store at `location`; for the directory of one box,
 * that directory. Creates nothing.
 */
export async function listHandoffs(location: string | URL): Promise<string[]> {
  if (isPostgres(location)) return await (await onPostgres()).listHandoffsAt(location);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, boxPart, path);
}

/** Checks a box like `Handoff.verify`, even one that is too damaged to open. Throws NOT_A_STORE. */
export async function verifyHandoff(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  if (isPostgres(directory)) return await (await onPostgres()).verifyHandoffAt(directory, options);
  const { ports, path } = await openBoxLocation(directoryOf(directory));
  return await verifyDirectory(ports, path, options);
}

/** Returns a local file as a body, which is read when it is published. Throws NO_SUCH_FILE. */
export async function* fileBody(path: string | URL): AsyncGenerator<Uint8Array> {
  const file = directoryOf(path);
  const { disk } = await openNodeFolder(file);
  yield* readNamed(disk, file);
}

/**
 * Throws INVALID_PATH if there is no folder at `path`. A program can check a foreign folder with it
 * before it opens a box, which would create the box.
 */
export async function checkFolder(path: string | URL): Promise<void> {
  const folder = await openNodeFolder(path);
  await getFolderStat(folder.disk, folder.path);
}

/**
 * Publishes one file in a plain folder, without a box. Writes to a temp name in the same folder,
 * syncs, renames it (with `replace`) or links it, and writes the done file last. Throws
 * FILE_EXISTS, INVALID_PATH and DISK_FULL.
 */
export async function publishFile(
  path: string | URL,
  body: Body,
  options: PublishFileOptions = {},
): Promise<ManifestFile> {
  checkPublishFile(options);
  const target = directoryOf(path);
  const ports = await openNodePorts(target.slice(0, Math.max(target.lastIndexOf("/"), 1)));
  return await publishFileOn(ports, target, body, options);
}

/** Resolves symbolic links: the ground of a store knows a box by its real path. */
async function openBoxLocation(directory: string | URL): Promise<OpenedLocation> {
  const { ports, path } = await openLocation(directory);
  return { ports, path: (await followLinks(ports.disk, path)).path };
}

/** Loaded on demand: most programs open folders only. */
async function onPostgres(): Promise<typeof engine> {
  return await import("../postgres/by-location.ts");
}
