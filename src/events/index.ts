// The subpath "holdfast/events": a DCB event store that many processes and machines append to at
// once.
import type * as engine from "../postgres/by-location.ts";
import type { NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { openLocation, openMemory, openNodePorts, type OpenedLocation } from "../ports/node/ports.ts";
import { directoryOf, isMemory, isPostgres } from "../ports/node/location.ts";
import { createCodec } from "./erasure/erasure-codec.ts";
import { DirectorySubjectKeys } from "./erasure/directory-keys.ts";
import { MemorySubjectKeys } from "./erasure/memory-keys.ts";
import type { EventStore, EventStoreOptions, SubjectKeys } from "./model/event-store.ts";
import { givenOn, type Given } from "./decide/given.ts";
import { followLinks } from "../locks/naming/follow-path.ts";
import { listParts, locatePart, type PartLocation } from "../part/location.ts";
import { logPart } from "./log/format/log-record.ts";
import { LogEventStore } from "./log-store.ts";
import { itemsOf, type Query } from "./model/query.ts";
import type { RebuildOptions, RebuildResult, Rebuilt } from "./verify/rebuild.ts";
import type { ExportOptions, TransferOptions } from "./transfer/export.ts";
import type { Imported, ImportOptions, ImportResult } from "./transfer/import.ts";
import type { SalvageOptions } from "./transfer/salvage.ts";
import { Upkeep } from "./upkeep.ts";

export type {
  Cancel,
  HolderInfo,
  NewEvent,
  Problem,
  Running,
  SequencedEvent,
  Sequencing,
  VerifyOptions,
  VerifyReport,
} from "../common.ts";
export type {
  PartLocation as EventsLocation,
  ExportOptions,
  Imported,
  ImportOptions,
  ImportResult,
  RebuildOptions,
  RebuildResult,
  Rebuilt,
  SalvageOptions,
  TransferOptions,
};
export type * from "./model/event-store.ts";
export { causedBy, type Causation } from "./model/causation.ts";
export {
  decide,
  type Decided,
  type DecideOptions,
  type Decision,
  type ReadonlyData,
  type ResultOf,
  type Written,
} from "./decide/decide.ts";
export type { Refusal } from "./decide/expectation.ts";
export type { Checked, Given, Outcome, ResultIn } from "./decide/given.ts";
export type { SnapshotDefinition } from "./decide/snapshot.ts";
export {
  model,
  modelsOf,
  type DecisionModel,
  type ModelDefinition,
  type Models,
  type StatesOf,
} from "./decide/model.ts";
export { hashedTag, isErased, personal, type Erased, type Personal } from "./erasure/personal.ts";
export { openProjection } from "./projection/projection.ts";
export type { Projection, ProjectionDefinition, ProjectionRebuildOptions } from "./projection/definition.ts";
export { listReadModels, readDocuments } from "./projection/read-models.ts";
export type { ReadDocumentsOptions, ReadModelDocument, ReadModelInfo } from "./projection/read-models.ts";
export type { Matching, MatchingItem, OfType, Query, QueryItem } from "./model/query.ts";
export type { EventSchemas, StandardSchema } from "./model/schema.ts";

const eventStoreOptions: OptionNames<EventStoreOptions> = {
  lockTimeoutMs: true,
  durability: true,
  mode: true,
  leaseMs: true,
  schemas: true,
  keys: true,
  create: true,
  id: true,
};

/**
 * Opens the log in `directory` and creates it if it does not exist. `memory:` opens a new log in memory each
 * time, like `memoryEvents`. `postgres://host/db?store=shop#events/main` is a log in a database, for which
 * the package `pg` must be installed. Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create`
 * and `id` ask for, INVALID_PATH if `directory` is a store, and CORRUPT.
 *
 * @example
 * ```ts
 * type Sold = NewEvent<"Sold", { sku: string }>;
 * await using events = await openEvents<Sold>("/mnt/shop/events");
 * await events.append({ type: "Sold", data: { sku: "A1" }, tags: ["sku:A1"] });
 * for await (const event of events.read({ tags: ["sku:A1"] })) console.log(event.position, event.data);
 * ```
 */
export async function openEvents<E extends NewEvent = NewEvent>(
  directory: string | URL,
  options: EventStoreOptions<E> = {},
): Promise<EventStore<E>> {
  checkOptions("openEvents", options, eventStoreOptions);
  if (isPostgres(directory)) return await (await onPostgres()).openEventsAt(directory, options);
  const { ports, path } = await openPlace(directory);
  return await new LogEventStore<E>({ ports, directory: path, codec: createCodec(options) }, options).open();
}

/**
 * Opens a new log in memory, for tests. It runs the same code and has the same guarantees as a log
 * on a disk.
 */
export function memoryEvents<E extends NewEvent = NewEvent>(
  options: Pick<EventStoreOptions<E>, "schemas" | "keys"> = {},
): EventStore<E> {
  checkOptions("memoryEvents", options, { schemas: true, keys: true });
  const { ports, path } = openMemory();
  return new LogEventStore<E>({ ports, directory: path, codec: createCodec(options) }, options);
}

/**
 * Starts a given-when-then test of a decision: appends `events` to an empty store. To use schemas,
 * pass a store: `given([…], memoryEvents({ schemas }))`.
 *
 * @example
 * ```ts
 * await given<Sold>([sold("A1")])
 *   .when((store) => sell(store, "A1"))
 *   .thenRefuses(/sold out/);
 * ```
 */
export function given<E extends NewEvent = NewEvent>(
  events: readonly E[] = [],
  store: EventStore<E> = memoryEvents<E>(),
): Given<E> {
  return givenOn(events, store);
}

/**
 * Opens the keys of subjects in a directory outside every log, shared by all processes that open
 * it. Creates it if it does not exist; needs no close. `memory:` is the same as
 * `memorySubjectKeys`. Throws INVALID_PATH for a directory inside a log.
 */
export async function openSubjectKeys(directory: string | URL): Promise<SubjectKeys> {
  if (isMemory(directory)) return memorySubjectKeys();
  const path = directoryOf(directory);
  return await DirectorySubjectKeys.open(await openNodePorts(path), path);
}

/** Returns keys of subjects in memory, for tests. */
export function memorySubjectKeys(): SubjectKeys {
  return new MemorySubjectKeys(openMemory().ports.random);
}

/**
 * Finds the log that `location` denotes: a directory of its own, or the log named `log` in a store
 * (default "main"). Creates nothing. Throws INVALID_NAME.
 */
export async function locateEvents(
  location: string | URL,
  { log = "main" }: { log?: string | undefined } = {},
): Promise<PartLocation> {
  if (isPostgres(location)) return await (await onPostgres()).locateEventsAt(location, log);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, logPart, path, log);
}

/**
 * Returns the directories of all logs of the store at `location`; for the directory of one log,
 * that directory. Creates nothing.
 */
export async function listEventLogs(location: string | URL): Promise<string[]> {
  if (isPostgres(location)) return await (await onPostgres()).listEventLogsAt(location);
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, logPart, path);
}

/** Checks a log like `EventStore.verify`, even one that is too damaged to open. Throws NOT_A_STORE. */
export async function verifyEvents(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  if (isPostgres(directory)) return await (await onPostgres()).verifyEventsAt(directory, options);
  return await (await upkeepOf(directory)).verify(options);
}

/**
 * Exports the log as NDJSON, in chunks of whole lines, between a start record and an end record. With `upTo`,
 * it exports up to that position, and succeeds even if the log is damaged after it. Throws NOT_A_STORE and
 * CORRUPT.
 */
export async function* exportEvents(
  directory: string | URL,
  options: ExportOptions = {},
): AsyncGenerator<string, void> {
  if (isPostgres(directory)) yield* (await onPostgres()).exportEventsAt(directory, options);
  else yield* (await upkeepOf(directory)).export(options);
}

/**
 * Reads events like `EventStore.read` from a log that is too damaged to open, up to a position
 * before the damage, which `verifyEvents` reports. Throws NOT_A_STORE and CORRUPT.
 */
export async function* salvageEvents(
  directory: string | URL,
  query: Query,
  options: SalvageOptions,
): AsyncGenerator<SequencedEvent, void> {
  if (isPostgres(directory)) (await onPostgres()).refuse(directory, "salvageEvents");
  yield* (await upkeepOf(directory)).readUpTo(itemsOf(query), options);
}

/**
 * Imports an export into a log that is empty or contains the beginning of that export; positions,
 * ids and times stay the same. A repeated import adds nothing.
 *
 * Throws LOG_REWOUND if the log differs from the export, CORRUPT if the export is incomplete,
 * LOCK_TIMEOUT, and LOCK_LOST. Lines before the failure stay imported.
 */
export async function importEvents(
  directory: string | URL,
  chunks: AsyncIterable<Uint8Array | string>,
  options: ImportOptions & Pick<EventStoreOptions, "mode"> = {},
): Promise<ImportResult> {
  if (isPostgres(directory)) {
    const database = await onPostgres();
    if (options.mode !== undefined) database.refuse(directory, "mode");
    return await database.importEventsAt(directory, chunks, options);
  }
  return await (await upkeepOf(directory)).import(chunks, options);
}

/** Rebuilds all index files, and keeps the old ones in `aside/`. Throws NOT_A_STORE and CORRUPT. */
export async function rebuildEventIndexes(
  directory: string | URL,
  options: RebuildOptions = {},
): Promise<RebuildResult> {
  if (isPostgres(directory)) (await onPostgres()).refuse(directory, "rebuildEventIndexes");
  return await (await upkeepOf(directory)).rebuild(options);
}

/** Loaded on demand: most programs open folders only. */
async function onPostgres(): Promise<typeof engine> {
  return await import("../postgres/by-location.ts");
}

async function upkeepOf(directory: string | URL): Promise<Upkeep> {
  const { ports, path } = await openPlace(directoryOf(directory));
  return new Upkeep(ports, path);
}

/** Follows symbolic links: the name of a log in the ground of its store depends on its path. */
async function openPlace(directory: string | URL): Promise<OpenedLocation> {
  const { ports, path } = await openLocation(directory);
  return { ports, path: (await followLinks(ports.disk, path)).path };
}
