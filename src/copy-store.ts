// Copies a store, or a part of one, between folders and databases: through what each capability
// exports and imports, so that no pair of engines has code of its own.
import { createHash } from "node:crypto";
import type { Cancel, HolderInfo } from "./common.ts";
import { Ground } from "./durable/liveness/ground.ts";
import { isThere } from "./durable/publish/directory.ts";
import { isStore, StoreLayout } from "./durable/store/store-record.ts";
import { holdfastError } from "./errors.ts";
import { exportEvents, importEvents, listEventLogs, locateEvents, openEvents } from "./events/index.ts";
import { logPart } from "./events/log/format/log-record.ts";
import type { EventStore } from "./events/model/event-store.ts";
import { copyConsumers } from "./events/transfer/consumers.ts";
import { openExport } from "./events/transfer/incoming.ts";
import { listTrees } from "./files/index.ts";
import { redacted } from "./format/database-location.ts";
import { checkOptions, type OptionNames } from "./format/known-options.ts";
import { findNameOf } from "./format/name.ts";
import { boxPart } from "./handoff/box/box-record.ts";
import { openBox } from "./handoff/box/open-box.ts";
import { listHandoffs, locateHandoff } from "./handoff/index.ts";
import { FolderBoxEnd } from "./handoff/transfer/box-folder.ts";
import type { BoxEnd } from "./handoff/transfer/box-items.ts";
import { followLinks } from "./locks/naming/follow-path.ts";
import { objectsPart } from "./objects/bucket/objects-record.ts";
import { openStorage } from "./objects/bucket/open-objects.ts";
import { listObjectStores, locateObjects } from "./objects/index.ts";
import type { ObjectsEnd } from "./objects/transfer/object-items.ts";
import { FolderObjectsEnd } from "./objects/transfer/objects-folder.ts";
import { findStoreAround } from "./part/location.ts";
import { transfer } from "./part/transfer/transfer.ts";
import type { TransferEnd, TransferItem } from "./part/transfer/transfer-end.ts";
import { livingOthers } from "./part/upgrade/idle.ts";
import type { Disk } from "./ports/disk.ts";
import { directoryOf, isMemory, isPostgres } from "./ports/node/location.ts";
import { openLocation, openNodePorts } from "./ports/node/ports.ts";
import { openStore } from "./store.ts";
import type * as engine from "./postgres/by-location.ts";

/** Options of `copyStore`. */
export interface CopyOptions extends Cancel {
  /** Reads both sides again after the copy and compares them; the result is in `equal`. Default false. */
  verify?: boolean | undefined;
  /**
   * Called now and then with the part that is being copied, the number of its events, tickets or objects done, and
   * the total.
   */
  onProgress?: ((part: string, done: number, total: number) => void) | undefined;
}

/** A part that `copyStore` has copied. */
export interface CopiedPart {
  /** The kind of the part. */
  readonly part: "log" | "box" | "objects";
  /** The location of the part, without a password. */
  readonly from: string;
  /** The location of its copy, without a password. */
  readonly to: string;
  /** The number of events, tickets or objects that were new to the copy. */
  readonly added: number;
  /** The number of events, tickets or objects that the part has. */
  readonly total: number;
  /** Only for a log: the number of consumers whose progress was copied. */
  readonly consumers?: number;
  /** Only with `verify`: true if both sides have the same content. */
  readonly equal?: boolean;
}

const copyOptions: OptionNames<CopyOptions> = { verify: true, onProgress: true, signal: true };

/** The parts of a location, and whether it is a store. */
interface FoundParts {
  readonly isStore: boolean;
  readonly logs: readonly string[];
  readonly boxes: readonly string[];
  readonly objects: readonly string[];
}

/** See `copyStore` of "holdfast". */
export async function copyStore(
  from: string | URL,
  to: string | URL,
  options: CopyOptions = {},
): Promise<CopiedPart[]> {
  checkOptions("copyStore", options, copyOptions);
  const [source, target] = [String(from), String(to)];
  if (source === target) throw invalid(target, "it is the location to copy from");
  for (const each of [source, target])
    if (isMemory(each)) throw invalid(each, "it is empty each time it is opened. Name a folder or a database");
  const { isStore: isWhole, logs, boxes, objects } = await findParts(source);
  if (!isWhole && logs.length + boxes.length + objects.length === 0) throw missing(source);
  await mustHaveNoTree(source);
  await mustBeIdle(source);
  if (isWhole) await makeStore(target);
  const copied: CopiedPart[] = [];
  for (const log of logs) {
    const name = isWhole ? nameOf(log) : undefined;
    copied.push(await copyLog(log, (await locateEvents(target, { log: name })).directory, options));
  }
  for (const box of boxes) {
    const name = isWhole ? nameOf(box) : undefined;
    const { directory } = await locateHandoff(target, { box: name });
    copied.push(await copyItems("box", await openBoxEnd(box, false), () => openBoxEnd(directory, true), options));
  }
  for (const each of objects) {
    const { directory } = await locateObjects(target);
    const copy = await copyItems("objects", await openObjectsEnd(each, false), () => openObjectsEnd(directory, true), options); // prettier-ignore
    copied.push(copy);
  }
  // A process that began meanwhile may have changed what was copied first.
  await mustBeIdle(source);
  return copied;
}

async function findParts(location: string): Promise<FoundParts> {
  const [logs, boxes, objects] = isPostgres(location)
    ? await (await onPostgres()).listAllPartsAt(location)
    : [await listEventLogs(location), await listHandoffs(location), await listObjectStores(location)];
  if (isPostgres(location)) return { isStore: await (await onPostgres()).isStoreAt(location), logs, boxes, objects };
  const path = directoryOf(location);
  return { isStore: await isStore((await openNodePorts(path)).disk, path), logs, boxes, objects };
}

async function copyLog(
  from: string,
  to: string,
  { verify = false, signal, onProgress }: CopyOptions,
): Promise<CopiedPart> {
  const shown = redacted(from);
  const { added, position } = await importEvents(to, exportEvents(from, { signal }), {
    signal,
    onProgress: (done, total) => onProgress?.(shown, done, total),
  });
  await using source = await openEvents(from, { create: false });
  await using target = await openEvents(to, { create: false });
  if ((await source.head()) > position) throw busy(shown, "another process has appended to it");
  const consumers = await copyConsumers(source, target);
  const result = { part: "log", from: shown, to: redacted(to), added, total: position, consumers } as const;
  if (!verify) return result;
  const [one, other] = [await digestOf(from, source, signal), await digestOf(to, target, signal)];
  return { ...result, equal: one === other };
}

async function copyItems<Item extends TransferItem, End extends TransferEnd<Item>>(
  part: CopiedPart["part"],
  opened: End,
  openTarget: () => Promise<End>,
  { verify, signal, onProgress }: CopyOptions,
): Promise<CopiedPart> {
  await using source = opened;
  await using target = await openTarget();
  const [from, to] = [source.shown, target.shown];
  const onProgressOfPart = (done: number, total: number): void => onProgress?.(from, done, total);
  return {
    part,
    from,
    to,
    ...(await transfer<Item>(source, target, { verify, signal, onProgress: onProgressOfPart })),
  };
}

async function openBoxEnd(location: string, create: boolean): Promise<BoxEnd> {
  if (isPostgres(location)) return await (await onPostgres()).openBoxEndAt(location, { create });
  const { ports, path } = await openLocation(location);
  return new FolderBoxEnd(await openBox(ports, (await followLinks(ports.disk, path)).path, { create }));
}

async function openObjectsEnd(location: string, create: boolean): Promise<ObjectsEnd> {
  if (isPostgres(location)) return await (await onPostgres()).openObjectsEndAt(location, { create });
  const { ports, path } = await openLocation(location);
  return new FolderObjectsEnd(await openStorage(ports, (await followLinks(ports.disk, path)).path, { create }));
}

/** The same for two logs with the same lines and consumers. Ids of logs and checksums of lines differ between them. */
async function digestOf(location: string, log: EventStore, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash("sha256");
  const { lines } = await openExport(exportEvents(location, { signal }));
  for await (const { first, time, content } of lines) hash.update(`${first} ${time} ${content}\n`);
  for (const { name, position } of await log.consumers()) hash.update(JSON.stringify([name, position]));
  return hash.digest("hex");
}

/** Only a folder has a tree of files. The whole copy is refused, so that nothing is left behind unseen. */
async function mustHaveNoTree(location: string): Promise<void> {
  if (isPostgres(location)) return;
  const [tree] = await listTrees(location);
  if (tree === undefined) return;
  const message = `the tree of files ${tree} cannot be copied, so nothing was. To copy one part, name its location instead of that of the store.`;
  throw holdfastError("UNSUPPORTED", message, { what: "the tree of files", location: tree });
}

/** A store or part is idle while no living process has joined it. Locks are free then. Throws RESOURCE_BUSY. */
async function mustBeIdle(location: string): Promise<void> {
  const others = livingOthers(await holdersOf(location));
  if (others.length > 0)
    throw busy(redacted(location), `it is in use by ${others.map(({ pid, host }) => `process ${pid} on ${host}`).join(", ")}`, others); // prettier-ignore
}

async function holdersOf(location: string): Promise<HolderInfo[]> {
  if (isPostgres(location)) return await (await onPostgres()).listHoldersAt(location);
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  const directory = (await findStoreOf(ports.disk, path))?.ground ?? `${path}/.holdfast`;
  if (!(await isThere(ports.disk, directory))) return [];
  await using ground = await Ground.openUnjoined(ports, directory);
  return await ground.holders();
}

/** Returns the store at `path`, or the one that the part at `path` belongs to. */
async function findStoreOf(disk: Disk, path: string): Promise<StoreLayout | undefined> {
  if (await isStore(disk, path)) return new StoreLayout(path);
  for (const part of [logPart, boxPart, objectsPart]) {
    const store = await findStoreAround(disk, part, path);
    if (store !== undefined) return store;
  }
  return undefined;
}

async function makeStore(location: string): Promise<void> {
  await (await openStore(location)).close();
}

/** The name that a log has in its store, by its location. */
function nameOf(location: string): string {
  const file = location.slice(location.lastIndexOf("/") + 1);
  return findNameOf(file) ?? file;
}

function busy(path: string, why: string, holders: readonly HolderInfo[] = []): Error {
  const message = `${path} cannot be copied now: ${why}. Stop the programs that use it, then repeat the copy: it continues.`;
  const blockedBy = holders.map((holder) => ({
    ...{ path, mode: "tree" as const, shared: false },
    ...{ holder, since: holder.startedAt },
  }));
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting: true });
}

function missing(location: string): Error {
  const path = redacted(location);
  const message = `There is no store, log, box or object store in ${path}: is it the right location, and is the share mounted?`;
  return holdfastError("NOT_A_STORE", message, { path });
}

function invalid(location: string, why: string): Error {
  const path = redacted(location);
  return holdfastError("INVALID_PATH", `Nothing can be copied to ${path}: ${why}.`, { path });
}

async function onPostgres(): Promise<typeof engine> {
  return await import("./postgres/by-location.ts");
}
