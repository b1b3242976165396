// The subpath "holdfast/events": a DCB event store that many processes and machines append to at
// once.
import type { NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { createMemoryHost } from "../ports/memory/host.ts";
import { createMemoryPorts } from "../ports/memory/ports.ts";
import { nodeMemoryBase, openNodePorts } from "../ports/node/ports.ts";
import type { Ports } from "../ports/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
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
import type { RebuildOptions, Rebuilt } from "./verify/rebuild.ts";
import type { ExportOptions, TransferOptions } from "./transfer/export.ts";
import type { Imported, ImportOptions } from "./transfer/import.ts";
import type { SalvageOptions } from "./transfer/salvage.ts";
import { Upkeep } from "./upkeep.ts";

export type {
  Cancel,
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
  RebuildOptions,
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
export type { Projection, ProjectionDefinition } from "./projection/definition.ts";
export type { Matching, Query, QueryItem } from "./model/query.ts";
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
 * Opens the log in `directory`; makes it if there is none. `memory:` is a new log each time, as
 * `memoryEvents`.
 */
export async function openEvents<E extends NewEvent = NewEvent>(
  directory: string | URL,
  options: EventStoreOptions<E> = {},
): Promise<EventStore<E>> {
  checkOptions("openEvents", options, eventStoreOptions);
  if (directory === "memory:") return await memoryStore(options).open();
  const { ports, path } = await openPlace(directory);
  return await new LogEventStore<E>({ ports, directory: path, codec: createCodec(options) }, options).open();
}

/** The same contract and the same code in memory, for tests. */
export function memoryEvents<E extends NewEvent = NewEvent>(
  options: Pick<EventStoreOptions<E>, "schemas" | "keys"> = {},
): EventStore<E> {
  checkOptions("memoryEvents", options, { schemas: true, keys: true });
  return memoryStore(options);
}

function memoryStore<E extends NewEvent>(options: EventStoreOptions<E>): LogEventStore<E> {
  const { clock, random, warn } = nodeMemoryBase;
  const ports = createMemoryPorts({ clock, random, host: createMemoryHost({ clock, random }, warn) });
  return new LogEventStore<E>({ ports, directory: "/events", codec: createCodec(options) }, options);
}

/**
 * Given these events, when, then. With schemas, pass a store: `given([…], memoryEvents({ schemas
 * }))`.
 */
export function given<E extends NewEvent = NewEvent>(
  events: readonly E[] = [],
  store: EventStore<E> = memoryEvents<E>(),
): Given<E> {
  return givenOn(events, store);
}

/**
 * Keys of subjects in a directory outside of every log, shared by all processes that open it. Makes
 * it if need be; needs no close.
 */
export async function openSubjectKeys(directory: string | URL): Promise<SubjectKeys> {
  const path = directoryOf(directory);
  return await DirectorySubjectKeys.open(await openNodePorts(path), path);
}

/** The same in memory, for tests. */
export function memorySubjectKeys(): SubjectKeys {
  return new MemorySubjectKeys(nodeMemoryBase.random);
}

/**
 * The log that `location` means: a directory of its own, or a store with a log named `log` (default
 * "main"). Makes nothing.
 */
export async function locateEvents(
  location: string | URL,
  { log = "main" }: { log?: string | undefined } = {},
): Promise<PartLocation> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await locatePart(disk, logPart, path, log);
}

/** The directories of all logs of the store at `location`; of a log's own directory, that one. Makes nothing. */
export async function listEventLogs(location: string | URL): Promise<string[]> {
  const path = directoryOf(location);
  const { disk } = await openNodePorts(path);
  return await listParts(disk, logPart, path);
}

/** As `verify` of a store; also for a log that is too damaged to be opened. NOT_A_STORE. */
export async function verifyEvents(directory: string | URL, options: VerifyOptions = {}): Promise<VerifyReport> {
  return await (await upkeepOf(directory)).verify(options);
}

/**
 * The whole log as NDJSON, in chunks of whole lines, with a record before and one after them. With
 * `upTo` also for a log that is damaged behind that position. NOT_A_STORE, CORRUPT.
 */
export async function* exportEvents(
  directory: string | URL,
  options: ExportOptions = {},
): AsyncGenerator<string, void> {
  yield* (await upkeepOf(directory)).export(options);
}

/**
 * As `read` of a store, for a log that is too damaged to be opened, up to a position before the
 * damage, which `verifyEvents` reports. NOT_A_STORE, CORRUPT.
 */
export async function* salvageEvents(
  directory: string | URL,
  query: Query,
  options: SalvageOptions,
): AsyncGenerator<SequencedEvent, void> {
  yield* (await upkeepOf(directory)).readUpTo(itemsOf(query), options);
}

/**
 * Imports an export into a log that is empty or has a beginning of it, with the same positions, ids
 * and times. A repeated import adds nothing. LOG_REWOUND where the log differs; CORRUPT for an
 * export that is not whole: lines before that point stay imported.
 */
export async function importEvents(
  directory: string | URL,
  chunks: AsyncIterable<Uint8Array | string>,
  options: ImportOptions & Pick<EventStoreOptions, "mode"> = {},
): Promise<Imported> {
  return await (await upkeepOf(directory)).import(chunks, options);
}

/** Makes all index files again; the old ones are kept in `aside/`. NOT_A_STORE, CORRUPT. */
export async function rebuildEventIndexes(directory: string | URL, options: RebuildOptions = {}): Promise<Rebuilt> {
  return await (await upkeepOf(directory)).rebuild(options);
}

async function upkeepOf(directory: string | URL): Promise<Upkeep> {
  const { ports, path } = await openPlace(directory);
  return new Upkeep(ports, path);
}

/** Symbolic links are followed: what a log is called in the ground of its store depends on its path. */
async function openPlace(directory: string | URL): Promise<{ readonly ports: Ports; readonly path: string }> {
  const given = directoryOf(directory);
  const ports = await openNodePorts(given);
  return { ports, path: (await followLinks(ports.disk, given)).path };
}
