// A read model of a log: the door to its documents and to the work on them.
import type { Cancel, NewEvent, Running } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { EventStore } from "../model/event-store.ts";
import { ProgressWaiters } from "../follow/progress-waiters.ts";
import { Loop, type Failure, type LoopOptions, type LoopSignals } from "../follow/loop.ts";
import { waitUntilProcessed } from "../follow/progress.ts";
import type { EventSource } from "../follow/work-through.ts";
import { accessOf } from "../log/log-access.ts";
import { Catalog } from "./catalog.ts";
import { checkDefinition, type Projection, type ProjectionDefinition, type RebuildOptions } from "./definition.ts";
import type { Document } from "./document.ts";
import { DocumentReader } from "./document-reader.ts";
import { ProjectionFiles } from "./generation.ts";
import { ProjectionWork } from "./projection-work.ts";
import type { Query } from "../model/query.ts";
import { TagIndex } from "./tag-index.ts";

/**
 * Opens the documents of `definition.name` for reading, from this and all other processes; `run` on at least one of them keeps them up to date. A raised
 * version is built by `run` or `rebuild` beside the old documents, which are read until then; `waitUntilProcessed` waits for documents of this version, or a newer one.
 */
export async function openProjection<S, E extends NewEvent, const Q extends Query<E["type"]> = Query<E["type"]>>(
  store: EventStore<E>,
  definition: ProjectionDefinition<S, E, Q>,
): Promise<Projection<S>> {
  const access = accessOf(store);
  const checked = checkDefinition(definition);
  const place = new ProjectionFiles(access, checked.name);
  await access.opened();
  const { staging, ports } = access.ground;
  const catalog = await Catalog.open(staging, `${place.directory}/catalog`, ports.host.bootId);
  // Sound because a definition is handed only events of its own query.
  const source = store as unknown as EventSource;
  const work = new ProjectionWork({ place, catalog, definition: checked, source });
  return new LogProjection<S>(place, checked.version, new DocumentReader(place, catalog), work);
}

class LogProjection<S> implements Projection<S> {
  readonly name: string;
  readonly #place: ProjectionFiles;
  readonly #version: number;
  readonly #reader: DocumentReader;
  readonly #work: ProjectionWork;
  readonly #index: TagIndex;
  readonly #loops = new Set<Running>();
  readonly #audience = new ProgressWaiters();
  #lastRun: Loop | undefined;

  constructor(place: ProjectionFiles, version: number, reader: DocumentReader, work: ProjectionWork) {
    this.name = place.name;
    this.#place = place;
    this.#version = version;
    this.#reader = reader;
    this.#work = work;
    this.#index = new TagIndex(reader);
  }

  async get(key: string): Promise<S | undefined> {
    // Sound because whatever is in the file was made by `apply`.
    return (await this.#reader.find(key))?.state as S | undefined;
  }

  async *all(): AsyncGenerator<readonly [key: string, state: S], void, undefined> {
    for await (const document of this.#reader.each(async ({ names }) => names))
      if (document.state !== undefined) yield entryOf<S>(document);
  }

  async *byTags(tags: readonly string[]): AsyncGenerator<readonly [key: string, state: S], void, undefined> {
    if (!Array.isArray(tags)) throw new TypeError("tags must be a list of texts.");
    for await (const document of this.#index.find(tags)) if (document.state !== undefined) yield entryOf<S>(document);
  }

  async position(): Promise<number> {
    return (await this.#reader.findCheckpoint())?.position ?? 0;
  }

  async waitUntilProcessed(position: number, options: Cancel = {}): Promise<void> {
    const { following, access } = this.#place;
    // What an older version has processed is not what this one would have made of it.
    const findCheckpoint = () => this.#reader.findCheckpoint(this.#version);
    // Of `run` only: how a rebuild failed is told to whoever has called it, and the documents are kept up to date all the same.
    await this.#audience.listen((findNews) => {
      const findFailure = () => findNews() ?? this.#lastRun?.failure;
      return waitUntilProcessed(position, { following, access, findCheckpoint, findFailure }, options);
    });
  }

  async rebuild({ onProgress, signal }: RebuildOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    let isBuilt = false;
    const loop = this.#begin(async (signals) => {
      isBuilt = await this.#work.build(signals, onProgress);
    }, signal);
    await loop.done;
    if (isBuilt) return;
    signal?.throwIfAborted();
    throw holdfastError("CLOSED", `The projection ${this.name} was closed before it was rebuilt.`, {});
  }

  run({ signal }: Cancel = {}): Running {
    // Whoever has begun another one since waits for that one.
    const tell = async (failure: Failure, loop: Loop): Promise<boolean> =>
      loop === this.#lastRun && (await this.#audience.tell(failure));
    return (this.#lastRun = this.#begin((signals) => this.#work.run(signals), signal, tell));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#loops].map((loop) => loop.stop()));
  }

  #begin(
    work: (signals: LoopSignals) => Promise<void>,
    signal: AbortSignal | undefined,
    tell?: LoopOptions["tell"],
  ): Loop {
    const { following, access } = this.#place;
    const onEnd = (loop: Running): void => void this.#loops.delete(loop);
    const loop = new Loop({ following, clock: access.ports.clock, signal, onEnd, ...(tell && { tell }) }, work);
    this.#loops.add(loop);
    return loop;
  }
}

function entryOf<S>({ key, state }: Document): readonly [key: string, state: S] {
  return [key, state as S];
}
