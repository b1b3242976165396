// The subpath "holdfast/handoff": files passed between programs, claimed once, never lost.
import { createMemoryHost } from "../ports/memory/host.ts";
import { createMemoryPorts } from "../ports/memory/ports.ts";
import { nodeMemoryBase, openNodeFolder, openNodePorts } from "../ports/node/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
import type { Ports } from "../ports/ports.ts";
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

export type { Body, Cancel, HolderInfo, Problem, Running, VerifyOptions, VerifyReport } from "../common.ts";
export type { PartLocation as HandoffLocation };
export type { Files, PublishOptions } from "./model/arguments.ts";
export type { Manifest, ManifestFile } from "./model/manifest.ts";
export type { Delivery } from "./consume/delivery.ts";
export type { ParkedTicket } from "./consume/parked.ts";
export type { ConsumeOptions } from "./consume/consumer.ts";
export type { AdoptRule, DeclaredFile, ExportRule } from "./foreign/rule.ts";
export type { Published } from "./publish/publisher.ts";
export type { PublishFileOptions };
export type {
  AttemptNote,
  Collected,
  Consumer,
  ContentOptions,
  DeadLetter,
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
 * Opens the box in `directory`, and makes it if there is none. `memory:` is a new box each time. NOT_A_STORE and
 * WRONG_STORE as the options ask, CROSS_DEVICE for a box on two file systems. Where nothing can be written, a box
 * that is there can be looked at: `find`, `list`, `stats`, `verify`.
 */
export async function openHandoff(directory: string | URL, options: HandoffOptions = {}): Promise<Handoff> {
  checkHandoffOptions("openHandoff", options);
  const { ports, path } = directory === "memory:" ? memoryPlace() : await openPlace(directory);
  const { create, id, leaseMs } = options;
  const opened = await openBox(ports, path, { create, id, leaseMs, isSynced: options.durability !== "none" });
  return new BoxHandoff(opened, options, openNodeFolder);
}

/**
 * The box that `location` means: a directory of its own, or a store with a box of that name. Makes nothing.
 */
export async function locateHandoff(
  location: string | URL,
  { box = "main" }: { box?: string | undefined } = {},
): Promise<PartLocation> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, boxPart, path, box);
}

/** The directories of all boxes of the store at `location`; of a box's own directory, that one. Makes nothing. */
export async function listHandoffs(location: string | URL): Promise<string[]> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, boxPart, path);
}

/** As `verify` of a hand-off; also for a box that is too damaged to be opened. NOT_A_STORE. */
export async function verifyHandoff(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  const { ports, path } = await openPlace(directory);
  return await verifyDirectory(ports, path, options);
}

/** The bytes of a file of this machine, as a body: read when it is published. NO_SUCH_FILE. */
export async function* fileBody(path: string | URL): AsyncGenerator<Uint8Array> {
  const file = directoryOf(path);
  const { disk } = await openNodeFolder(file);
  yield* readNamed(disk, file);
}

/**
 * INVALID_PATH when there is no folder of other programs at `path`: for a program that asks before it opens a box, and so
 * makes it.
 */
export async function checkFolder(path: string | URL): Promise<void> {
  const folder = await openNodeFolder(path);
  await getFolderStat(folder.disk, folder.path);
}

/**
 * The simplest hand-over, without a box: temp name in the same directory, fsync, rename (or link, which fails with
 * FILE_EXISTS), done file last.
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

interface Place {
  readonly ports: Ports;
  readonly path: string;
}

function memoryPlace(): Place {
  const { clock, random, warn } = nodeMemoryBase;
  const ports = createMemoryPorts({ clock, random, host: createMemoryHost({ clock, random }, warn) });
  return { ports, path: "/handoff" };
}

/** Symbolic links are followed: what a box is called in the ground of its store depends on its path. */
async function openPlace(directory: string | URL): Promise<Place> {
  const given = directoryOf(directory);
  const ports = await openNodePorts(given);
  return { ports, path: (await followLinks(ports.disk, given)).path };
}
