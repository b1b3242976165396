// Read models for an operator: lists those of a log with their progress, and reads documents without the program that
// defines them.
import type { EventStore } from "../model/event-store.ts";
import type { HolderInfo } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { findNameOf, slotName } from "../../format/name.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { GenerationEntry } from "../../part/generations.ts";
import { workOn } from "../follow/log-work.ts";
import { accessOf, type LogAccess } from "../log/log-access.ts";
import { DocumentReader } from "./document-reader.ts";
import { ProjectionFiles } from "./generation.ts";

/** A read model as `listReadModels` lists it. */
export interface ReadModelInfo {
  /** The name of the read model. */
  readonly name: string;
  /** Version of the definition that made its documents. Absent until the first ones are complete. */
  readonly version?: number;
  /** Its documents contain all events up to this position. Absent until the first ones are complete. */
  readonly position?: number;
  /** Number of events after `position`, including those that its query does not match. Absent without `position`. */
  readonly lag?: number;
  /** The process that keeps it up to date. Absent if none does. */
  readonly holder?: HolderInfo;
  /** Why its records cannot be read, and what to do. */
  readonly problem?: string;
}

/** A document of a read model. */
export interface ReadModelDocument {
  /** The key of the document. */
  readonly key: string;
  /** Position of the last event that changed it. */
  readonly position: number;
  /** Its tags. */
  readonly tags: readonly string[];
  /** The state that `apply` returned. */
  readonly state: unknown;
}

/** Options of `readDocuments`. */
export interface ReadDocumentsOptions {
  /** Returns only the document of this key. Default: all. */
  key?: string | undefined;
  /** Skips this many documents, without reading them. Default 0. */
  skip?: number | undefined;
  /** The largest number of documents to return. Default: all. */
  limit?: number | undefined;
}

/**
 * Lists the read models of a log, by name. One whose records cannot be read is listed with its
 * `problem`. Creates nothing. Throws IO_ERROR.
 */
export async function listReadModels(store: EventStore): Promise<ReadModelInfo[]> {
  const access = accessOf(store);
  await access.opened();
  const held = new Map(
    (await workOn(access).leases.list("projections")).map(({ path, holder }) => [
      path.slice(path.lastIndexOf("projections/")),
      holder,
    ]),
  );
  const found: ReadModelInfo[] = [];
  for (const file of await access.derived.listReadModels()) {
    const name = findNameOf(file);
    if (name === undefined) continue;
    try {
      found.push({ name, ...(await describe(access, file, held, store)) });
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      found.push({ name, problem: error.message });
    }
  }
  return found.sort((one, other) => (one.name < other.name ? -1 : 1));
}

/**
 * Iterates over the documents of a read model, in the version that is complete, in a fixed order. Yields none if
 * there is no such read model. Throws RESOURCE_BUSY if it was rebuilt meanwhile: read again.
 */
export async function* readDocuments(
  store: EventStore,
  name: string,
  options: ReadDocumentsOptions = {},
): AsyncGenerator<ReadModelDocument, void, undefined> {
  checkOptions("readDocuments", options, { key: true, skip: true, limit: true });
  const { key, skip = 0, limit = Infinity } = options;
  const access = accessOf(store);
  await access.opened();
  if (!(await access.derived.listReadModels()).some((file) => findNameOf(file) === name)) return;
  const files = await ProjectionFiles.open(access, name);
  const { current } = await files.generations.read();
  if (current === undefined) return;
  const reader = new DocumentReader(files, { version: current.version, readsFrom: 1 });
  const documents =
    key === undefined
      ? reader.each(async ({ names }) => names.slice(skip, skip + limit))
      : [await reader.find(key)].filter((document) => document !== undefined);
  for await (const { key: found, position, tags, state } of documents) yield { key: found, position, tags, state };
}

async function describe(
  access: LogAccess,
  file: string,
  held: ReadonlyMap<string, HolderInfo>,
  store: EventStore,
): Promise<Omit<ReadModelInfo, "name">> {
  const directory = `${access.directory}/projections/${file}`;
  const { current, building } = await access.derived.readGenerations(`projections/${file}`);
  const holderOf = (entry: GenerationEntry | undefined): HolderInfo | undefined =>
    entry && held.get(`projections/${file}/${slotName(entry.number)}`);
  const holder = holderOf(current) ?? holderOf(building);
  const worked = holder === undefined ? {} : { holder };
  if (current === undefined) return worked;
  const checkpoints = await workOn(access).openCheckpoints(`${directory}/${slotName(current.number)}/checkpoint`, {
    remembersCutOff: true,
  });
  const { position } = (await checkpoints.read()).state;
  const lag = Math.max(0, (await store.head()) - position);
  return { version: current.version, position, lag, ...worked };
}
