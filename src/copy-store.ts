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
import { listHandoffs } from "./handoff/index.ts";
import { followLinks } from "./locks/naming/follow-path.ts";
import { listObjectStores } from "./objects/index.ts";
import { findStoreAround } from "./part/location.ts";
import { livingOthers } from "./part/upgrade/idle.ts";
import { directoryOf, isPostgres } from "./ports/node/location.ts";
import { openNodePorts } from "./ports/node/ports.ts";
import { openStore } from "./store.ts";
import type * as engine from "./postgres/by-location.ts";

/** Options of `copyStore`. */
export interface CopyOptions extends Cancel {
  /** Then reads both sides again and compares them. Default false. */
  verify?: boolean | undefined;
  /** Called now and then with the part that is being copied, the number of its events done, and the total. */
  onProgress?: ((part: string, done: number, total: number) => void) | undefined;
}

/** A part that `copyStore` has copied. */
export interface CopiedPart {
  /** The kind of the part. */
  readonly part: "log";
  /** The location of the part, without a password. */
  readonly from: string;
  /** The location of its copy, without a password. */
  readonly to: string;
  /** The number of events that were new to the copy. */
  readonly added: number;
  /** Position of the last event of the copy. */
  readonly position: number;
  /** The number of consumers whose progress was copied. */
  readonly consumers: number;
  /** With `verify`: true if both sides have the same content. */
  readonly equal?: boolean;
}

const copyOptions: OptionNames<CopyOptions> = { verify: true, onProgress: true, signal: true };

/** What has no export and import: the whole copy is refused, so that nothing is left behind unseen. */
const uncopied = [
  { what: "the hand-off box", room: "handoff", list: listHandoffs },
  { what: "the object store", room: "objects", list: listObjectStores },
  { what: "the tree of files", room: undefined, list: listTrees },
] as const;

/** See `copyStore` of "holdfast". */
export async function copyStore(
  from: string | URL,
  to: string | URL,
  options: CopyOptions = {},
): Promise<CopiedPart[]> {
  checkOptions("copyStore", options, copyOptions);
  const [source, target] = [String(from), String(to)];
  if (source === target) throw invalid(target, "it is the location to copy from");
  const { isInStore } = await locateEvents(source);
  const logs = await listEventLogs(source);
  if (!isInStore && logs.length === 0) throw missing(source);
  await mustBeCopyable(source);
  await mustBeIdle(source);
  if (isInStore) await makeStore(target);
  const copied: CopiedPart[] = [];
  for (const log of logs) {
    const name = isInStore ? nameOf(log) : undefined;
    copied.push(await copyLog(log, (await locateEvents(target, { log: name })).directory, options));
  }
  // A process that began meanwhile may have changed what was copied first.
  await mustBeIdle(source);
  return copied;
}

async function copyLog(
  from: string,
  to: string,
  { verify = false, signal, onProgress }: CopyOptions,
): Promise<CopiedPart> {
  const shown = redacted(from);
  const imported = await importEvents(to, exportEvents(from, { signal }), {
    signal,
    onProgress: (done, total) => onProgress?.(shown, done, total),
  });
  await using source = await openEvents(from, { create: false });
  await using target = await openEvents(to, { create: false });
  if ((await source.head()) > imported.position) throw busy(shown, "another process has appended to it");
  const consumers = await copyConsumers(source, target);
  const result = { part: "log", from: shown, to: redacted(to), ...imported, consumers } as const;
  if (!verify) return result;
  const [one, other] = [await digestOf(from, source, signal), await digestOf(to, target, signal)];
  return { ...result, equal: one === other };
}

/** The same for two logs with the same lines and consumers. Ids of logs and checksums of lines differ between them. */
async function digestOf(location: string, log: EventStore, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash("sha256");
  const { lines } = await openExport(exportEvents(location, { signal }));
  for await (const { first, time, content } of lines) hash.update(`${first} ${time} ${content}\n`);
  for (const { name, position } of await log.consumers()) hash.update(JSON.stringify([name, position]));
  return hash.digest("hex");
}

async function mustBeCopyable(location: string): Promise<void> {
  const engine = isPostgres(location) ? await onPostgres() : undefined;
  for (const { what, room, list } of uncopied) {
    const find = async (): Promise<string[]> =>
      engine === undefined ? await list(location) : room === undefined ? [] : await engine.listPartsAt(location, room);
    const [found] = await find();
    if (found === undefined) continue;
    const shown = redacted(found);
    const message = `${what} ${shown} cannot be copied, so nothing was. To copy one log, name its location instead of that of the store.`;
    throw holdfastError("UNSUPPORTED", message, { what, location: shown });
  }
}

/** A store or log is idle while no living process has joined it. Locks are free then. Throws RESOURCE_BUSY. */
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
  const store = (await isStore(ports.disk, path)) ? new StoreLayout(path) : await findStoreAround(ports.disk, logPart, path); // prettier-ignore
  const directory = store?.ground ?? `${path}/.holdfast`;
  if (!(await isThere(ports.disk, directory))) return [];
  await using ground = await Ground.openUnjoined(ports, directory);
  return await ground.holders();
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
  const message = `There is no store and no log in ${path}: is it the right location, and is the share mounted?`;
  return holdfastError("NOT_A_STORE", message, { path });
}

function invalid(location: string, why: string): Error {
  const path = redacted(location);
  return holdfastError("INVALID_PATH", `Nothing can be copied to ${path}: ${why}.`, { path });
}

async function onPostgres(): Promise<typeof engine> {
  return await import("./postgres/by-location.ts");
}
