// The calls of the capabilities' subpaths for a location in PostgreSQL. The subpaths load this file
// on demand: a program that opens no such location loads neither it nor the driver.
import type {
  BlockingLock,
  HolderInfo,
  NameRule,
  NewEvent,
  OpenOptions,
  VerifyOptions,
  VerifyReport,
} from "../common.ts";
import type { EventStore, EventStoreOptions } from "../events/model/event-store.ts";
import type { ExportOptions } from "../events/transfer/export.ts";
import type { ImportResult, ImportOptions } from "../events/transfer/import.ts";
import { holdfastError } from "../errors.ts";
import type { Handoff, HandoffOptions } from "../handoff/model/handoff.ts";
import type { LockRoot } from "../locks/naming/lock-root.ts";
import type { HeldLock, PathLocks, PathLocksOptions } from "../locks/path/path-locks.ts";
import type { StoreLock, StoreLockOptions } from "../locks/store/store-lock.ts";
import { Findings } from "../part/findings.ts";
import type { ObjectStore, ObjectStoreOptions } from "../objects/model/object-store.ts";
import type { PartLocation } from "../part/location.ts";
import type { Closable } from "../part/shared-parts.ts";
import type { FormatReport } from "../part/upgrade/formats.ts";
import { nodeClock } from "../ports/node/clock.ts";
import { openNodeHost } from "../ports/node/host.ts";
import { makeScratch } from "../ports/node/scratch.ts";
import { nodeRandom } from "../ports/node/random.ts";
import { parseLocation } from "./connection/location.ts";
import { Database } from "./connection/database.ts";
import { exportRows, importRows } from "./events/transfer.ts";
import { logRows } from "./events/pg-events.ts";
import { boxRows, PgBox } from "./handoff/pg-box.ts";
import type { ObjectsEnd } from "../objects/transfer/object-items.ts";
import { randomName } from "../format/id.ts";
import { PgObjectsEnd } from "./transfer/object-rows.ts";
import { PgBoxEnd } from "./transfer/box-rows.ts";
import type { BoxEnd } from "../handoff/transfer/box-items.ts";
import { findParts, openPart, type PgPartKind, type PgPart } from "./parts.ts";
import { PgStore, type PostgresOptions } from "./pg-store.ts";
import { WholeStore } from "./whole-store.ts";
import { findSchemaVersion, migrate, openSchema, schemaVersion } from "./schema/migrations.ts";

type Location = string | URL;

const pathLocksLeaseMs = 300_000;

export async function openStoreAt(
  location: Location,
  {
    readOnly,
    names,
    ...options
  }: PostgresOptions & { readonly readOnly?: boolean | undefined; readonly names?: NameRule | undefined },
): Promise<WholeStore> {
  const { part, shown } = parseLocation(location);
  if (part !== undefined) throw unsupported(shown, `the part #${part} in the location of a store`);
  if (readOnly === true) throw unsupported(shown, "readOnly");
  if (names !== undefined) throw unsupported(shown, "names");
  return new WholeStore(await openPgStore(location, options));
}

export async function openEventsAt<E extends NewEvent>(
  location: Location,
  options: EventStoreOptions<E>,
): Promise<EventStore<E>> {
  const { leaseMs, create, id, ...rest } = options;
  const store = await openPgStore(location, { leaseMs, create: create !== false && id === undefined });
  return await ownedBy(store, () => store.events<E>(nameIn(location, "events"), { ...rest, create, id }));
}

export async function openHandoffAt(location: Location, options: HandoffOptions): Promise<Handoff> {
  const { leaseMs, create, id, ...rest } = options;
  const store = await openPgStore(location, { leaseMs, create: create !== false && id === undefined });
  return await ownedBy(store, () => store.handoff(nameIn(location, "handoff"), { ...rest, create, id }));
}

export async function openObjectsAt(location: Location, options: ObjectStoreOptions): Promise<ObjectStore> {
  mustBeObjects(location);
  const { create, id } = options;
  const store = await openPgStore(location, { create: create !== false && id === undefined });
  return await ownedBy(store, () => store.objects(options));
}

export async function locateObjectsAt(location: Location): Promise<PartLocation> {
  mustBeObjects(location);
  const { part } = parseLocation(location);
  const found = await listObjectStoresAt(location);
  const directory = found[0] ?? `${String(location).replace(/#.*$/, "")}#objects`;
  return { directory, isInStore: part === undefined, isThere: found.length > 0 };
}

/** Lists the object store of a store, which has no name. */
export async function listObjectStoresAt(location: Location): Promise<string[]> {
  const { store } = parseLocation(location);
  return await withDatabase(location, async (database) =>
    (await findParts(database, store, "objects")).map(() => `${String(location).replace(/#.*$/, "")}#objects`),
  );
}

function mustBeObjects(location: Location): void {
  const { part = "objects", shown } = parseLocation(location);
  if (part === "objects") return;
  throw holdfastError("INVALID_PATH", `The location ${shown} names no object store.`, { path: shown });
}

export async function openPathLocksAt(location: Location, options: PathLocksOptions): Promise<PathLocks> {
  const { leaseMs = pathLocksLeaseMs, interop, names, timeoutMs, ...open } = options;
  if (names !== undefined) throw unsupported(parseLocation(location).shown, "names");
  if (interop === true) throw unsupported(parseLocation(location).shown, "interop");
  const store = await openPgStore(location, { leaseMs, ...open });
  return await ownedBy(store, () => store.locks({ timeoutMs }));
}

export async function listPathLocksAt(
  location: Location,
  options: { under?: string | undefined },
): Promise<HeldLock[]> {
  await using store = await openPgStore(location, { create: false });
  return await (await store.locks({ listOnly: true })).list(options);
}

/** Returns the store as the root of its locks, which have tables from the start. */
export async function findLockRootAt(location: Location): Promise<LockRoot | undefined> {
  const isThere = await withDatabase(location, (database) => isStore(database));
  return isThere ? { root: String(location), path: "", hasLocks: true } : undefined;
}

export async function openStoreLockAt(location: Location, options: StoreLockOptions): Promise<StoreLock> {
  const { timeoutMs, ...open } = options;
  const store = await openPgStore(location, open);
  return await ownedBy(store, () => store.storeLock({ timeoutMs }));
}

export async function findStoreHolderAt(location: Location): Promise<BlockingLock | undefined> {
  await using store = await openPgStore(location, { create: false });
  return await (await store.storeLock({ listOnly: true })).findHolder();
}

export async function verifyHandoffAt(location: Location, options: VerifyOptions): Promise<VerifyReport> {
  await using box = await openHandoffAt(location, { create: false });
  return await box.verify(options);
}

export async function locateHandoffAt(location: Location, box: string): Promise<PartLocation> {
  return await locate(location, "handoff", box);
}

export async function listHandoffsAt(location: Location): Promise<string[]> {
  return await listPartsAt(location, "handoff");
}

export async function locateEventsAt(location: Location, log: string): Promise<PartLocation> {
  return await locate(location, "events", log);
}

export async function listEventLogsAt(location: Location): Promise<string[]> {
  return await listPartsAt(location, "events");
}

/**
 * Lists the locations of the parts of one kind in a store; for the location of a part, only that
 * one.
 */
export async function listPartsAt(location: Location, room: PgPartKind): Promise<string[]> {
  const { store, part } = parseLocation(location);
  const names = await withDatabase(location, (database) => findParts(database, store, room));
  const all = names.map((name) => partLocation(location, room, name));
  return part === undefined ? all : all.filter((each) => parseLocation(each).part === part);
}

/** Lists the locations of the logs, the boxes and the object store, as `listPartsAt` does for one kind. */
export async function listAllPartsAt(location: Location): Promise<[string[], string[], string[]]> {
  const { part } = parseLocation(location);
  const objects = part === undefined || part === "objects" ? await listObjectStoresAt(location) : [];
  return [await listPartsAt(location, "events"), await listPartsAt(location, "handoff"), objects];
}

/** True if the location names a store, and not a part of one. */
export async function isStoreAt(location: Location): Promise<boolean> {
  return parseLocation(location).part === undefined && (await withDatabase(location, isStore));
}

/** Opens a box to copy it. */
export async function openBoxEndAt(location: Location, { create }: { readonly create: boolean }): Promise<BoxEnd> {
  const store = await openPgStore(location, { create });
  return await orClose(store, async () => {
    const { ground } = store;
    const name = nameIn(location, "handoff");
    const wanted = { store: parseLocation(location).store, room: "handoff", name, rows: boxRows, create } as const;
    const part = await openPart(ground.database, ground.ports, wanted);
    const box = new PgBox({ ground, part, store: wanted.store, isSynced: true, makeScratch });
    return new PgBoxEnd(box, () => store.close());
  });
}

/** Opens the object store of a store to copy it. */
export async function openObjectsEndAt(
  location: Location,
  { create }: { readonly create: boolean },
): Promise<ObjectsEnd> {
  mustBeObjects(location);
  const store = await openPgStore(location, { create });
  return await orClose(store, async () => {
    const { database, ports } = store.ground;
    const { store: name } = parseLocation(location);
    const { p: part } = await openPart(database, ports, { store: name, room: "objects", name: "", create });
    const newId = (): string => randomName(ports.random.bytes(16));
    return new PgObjectsEnd({ database, part, newId, close: () => store.close() });
  });
}

/** Lists the processes that have joined the store. */
export async function listHoldersAt(location: Location): Promise<HolderInfo[]> {
  await using store = await openPgStore(location, { create: false });
  return await store.holders();
}

export async function verifyEventsAt(location: Location, options: VerifyOptions): Promise<VerifyReport> {
  await using events = await openEventsAt(location, { create: false });
  return await events.verify(options);
}

export async function* exportEventsAt(location: Location, options: ExportOptions): AsyncGenerator<string, void> {
  const database = await Database.open(location, nodeClock);
  try {
    yield* exportRows(database, await logAt(database, location, { create: false }), options);
  } finally {
    await database.close();
  }
}

export async function importEventsAt(
  location: Location,
  chunks: AsyncIterable<Uint8Array | string>,
  options: ImportOptions,
): Promise<ImportResult> {
  return await withDatabase(location, async (database) =>
    importRows(database, await logAt(database, location, { create: true }), chunks, options),
  );
}

/** Throws UNSUPPORTED for a call that only a folder supports. */
export function refuse(location: Location, what: string): never {
  throw unsupported(parseLocation(location).shown, what);
}

/** Checks the schema, the processes and the lock tables of a store. Undefined if there is none. */
export async function verifyStoreAt(location: Location): Promise<VerifyReport | undefined> {
  const { part, shown } = parseLocation(location);
  if (part !== undefined || !(await withDatabase(location, isStore))) return undefined;
  const findings = new Findings("Restore the database from a backup.");
  await findings.attempt({ path: shown }, "The store", async () => {
    await using store = await openPgStore(location, { create: false });
    await store.holders();
    await (await store.locks({ listOnly: true })).list();
    await (await store.storeLock({ listOnly: true })).findHolder();
  });
  return { ok: !findings.hasDamage, checked: 2, problems: findings.problems };
}

/** Brings the schema of the database up to this release, and creates it in an empty one. */
export async function upgradeStoreAt(
  location: Location,
  { dryRun = false }: { readonly dryRun?: boolean | undefined },
): Promise<FormatReport[]> {
  return await withDatabase(location, async (database) => {
    const { version: found, writtenBy } = await findSchemaVersion(database);
    const report = { part: "schema", path: database.location.shown, found, newest: schemaVersion, writtenBy };
    if (found > schemaVersion) return [{ ...report, state: "newer", upgraded: false }];
    if (found === schemaVersion) return [{ ...report, state: "current", upgraded: false }];
    if (!dryRun) await migrate(database);
    const change = found === 0 ? "its tables are made" : `the schema becomes version ${schemaVersion}`;
    return [{ ...report, state: "older", change, upgraded: !dryRun }];
  });
}

async function openPgStore(location: Location, options: PostgresOptions): Promise<PgStore> {
  const ports = { clock: nodeClock, random: nodeRandom, host: await openNodeHost(), makeScratch };
  return await PgStore.open(location, options, ports);
}

async function orClose<T>(store: PgStore, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Opens a part. If the part was opened alone, closing it closes its store. */
async function ownedBy<T extends Closable & AsyncDisposable>(store: PgStore, open: () => Promise<T>): Promise<T> {
  return await orClose(store, async () => {
    const part = await open();
    const close = part.close.bind(part);
    part.close = async () => {
      await close();
      await store.close();
    };
    part[Symbol.asyncDispose] = () => part.close();
    return part;
  });
}

async function withDatabase<T>(location: Location, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await Database.open(location, nodeClock);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function logAt(database: Database, location: Location, { create }: Pick<OpenOptions, "create">): Promise<PgPart> {
  await openSchema(database, { create: create !== false });
  const { store } = database.location;
  const name = nameIn(location, "events");
  const ports = { clock: nodeClock, random: nodeRandom };
  // A log is opened through its store, because the store has its ground.
  await openPart(database, ports, { store, room: "ground", name: "", create });
  return await openPart(database, ports, { store, room: "events", name, rows: logRows, create });
}

async function locate(location: Location, room: PgPartKind, name: string): Promise<PartLocation> {
  const { store, part } = parseLocation(location);
  const isInStore = part === undefined;
  const wanted = isInStore ? name : nameIn(location, room);
  const { names, hasStore } = await withDatabase(location, async (database) => ({
    names: await findParts(database, store, room),
    hasStore: await isStore(database),
  }));
  const directory = partLocation(location, room, wanted);
  return { directory, isInStore: isInStore && hasStore, isThere: names.includes(wanted) };
}

async function isStore(database: Database): Promise<boolean> {
  return (await findParts(database, database.location.store, "ground")).length > 0;
}

/** Returns the name of the part that a location names; "main" if it names none. */
function nameIn(location: Location, room: PgPartKind): string {
  const { part = `${room}/main`, shown } = parseLocation(location);
  if (part.startsWith(`${room}/`)) return part.slice(room.length + 1);
  const message = `The location ${shown} names no part in ${room}/.`;
  throw holdfastError("INVALID_PATH", message, { path: shown });
}

/**
 * Returns the location of a part with the password, because callers use it for further calls;
 * `PartLocation.directory` documents that.
 */
function partLocation(location: Location, room: PgPartKind, name: string): string {
  return `${String(location).replace(/#.*$/, "")}#${room}/${name}`;
}

function unsupported(location: string, what: string): Error {
  const message = `${location}: ${what} is only possible with a folder.`;
  return holdfastError("UNSUPPORTED", message, { what, location });
}
