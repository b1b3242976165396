// A read model of a log, as programs hold it: its documents, and the work that keeps them up to
// date.
import type { Cancel, NewEvent, Running } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { Loop, ProgressWaiters, type LoopOptions, type LoopSignals } from "../../part/loop.ts";
import { waitUntilProcessed } from "../../part/progress/wait-until-processed.ts";
import type { EventSource } from "../follow/process-events.ts";
import { accessOf } from "../log/log-access.ts";
import type { EventStore } from "../model/event-store.ts";
import type { Query } from "../model/query.ts";
import {
  checkDefinition,
  type Projection,
  type ProjectionDefinition,
  type ProjectionRebuildOptions,
} from "./definition.ts";
import type { Document } from "./document.ts";
import { DocumentReader, type ReadableVersions } from "./document-reader.ts";
import { ProjectionFiles } from "./generation.ts";
import { ProjectionWork } from "./projection-work.ts";
import { TagIndex } from "./tag-index.ts";

/**
 * Opens a read model. `run` in at least one process keeps its documents up to date. With a raised
 * version, `run` or `rebuild` builds new documents beside the old ones, and programs of both
 * versions run side by side, each on documents of its own version. Throws INVALID_NAME, and a
 * RangeError for an invalid version.
 *
 * @example
 * ```ts
 * const stock = await openProjection(events, {
 *   name: "stock",
 *   query: { types: ["Stocked"] },
 *   key: (event) => event.data.sku,
 *   apply: (count: number | undefined, event) => (count ?? 0) + event.data.count,
 * });
 * stock.run();
 * const left = await stock.get("A1");
 * ```
 */
export async function openProjection<S, E extends NewEvent, const Q extends Query<E["type"]> = Query<E["type"]>>(
  store: EventStore<E>,
  definition: ProjectionDefinition<S, E, Q>,
): Promise<Projection<S>> {
  const checked = checkDefinition(definition);
  const files = await ProjectionFiles.open(accessOf(store), checked.name);
  // Safe, because a definition gets only events of its own query.
  const source = store as unknown as EventSource;
  return new LogProjection<S>(files, checked, new ProjectionWork({ files, definition: checked, source }));
}

class LogProjection<S> implements Projection<S> {
  readonly name: string;
  readonly #files: ProjectionFiles;
  readonly #versions: ReadableVersions;
  readonly #reader: DocumentReader;
  readonly #work: ProjectionWork;
  readonly #index: TagIndex;
  readonly #loops = new Set<Running>();
  readonly #waiters = new ProgressWaiters();
  #lastRun: Loop | undefined;

  constructor(files: ProjectionFiles, versions: ReadableVersions, work: ProjectionWork) {
    this.name = files.name;
    this.#files = files;
    this.#work = work;
    this.#versions = versions;
    this.#reader = new DocumentReader(files, versions);
    this.#index = new TagIndex(this.#reader);
  }

  async get(key: string): Promise<S | undefined> {
    // Safe, because `apply` made the state in the file.
    return (await this.#reader.find(key))?.state as S | undefined;
  }

  async *all(): AsyncGenerator<readonly [key: string, state: S], void, undefined> {
    for await (const document of this.#reader.each(async ({ names }) => names))
      if (document.state !== undefined) yield entryOf<S>(document);
  }

  async *byTags(tags: readonly string[]): AsyncGenerator<readonly [key: string, state: S], void, undefined> {
    if (!Array.isArray(tags)) throw new TypeError("tags must be a list of strings.");
    for await (const document of this.#index.find(tags)) if (document.state !== undefined) yield entryOf<S>(document);
  }

  async position(): Promise<number> {
    return (await this.#reader.findCheckpoint())?.position ?? 0;
  }

  async waitUntilProcessed(position: number, options: Cancel = {}): Promise<void> {
    const { loops, sequence } = this.#files.work;
    // Ignore documents of another version: this version would have computed different ones.
    const findCheckpoint = () => this.#reader.findOwnCheckpoint();
    // Report only failures of `run`. A failure of `rebuild` goes to its caller, and `run` continues.
    await this.#waiters.listen((findToldFailure) => {
      const findFailure = () => findToldFailure() ?? this.#lastRun?.failure;
      return waitUntilProcessed(position, { loops, sequence, findCheckpoint, findFailure }, options);
    });
  }

  async rebuild({ onProgress, signal }: ProjectionRebuildOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    let isBuilt = false;
    const loop = this.#begin(
      async (signals) => {
        isBuilt = await this.#work.build(signals, onProgress);
      },
      { signal },
    );
    await loop.done;
    if (isBuilt) return;
    signal?.throwIfAborted();
    throw holdfastError("CLOSED", `The projection ${this.name} was closed before it was rebuilt.`, {});
  }

  run({ signal }: Cancel = {}): Running {
    const loop = this.#begin((signals) => this.#work.run(signals), {
      signal,
      // If `run` was called again since, callers wait for the newer loop, not for this one.
      tell: async (failure, failed) => failed === this.#lastRun && (await this.#waiters.tell(failure)),
    });
    return (this.#lastRun = loop);
  }

  async dropOlder(): Promise<void> {
    await this.#files.generations.dropOlder(this.#versions.version);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#loops].map((loop) => loop.stop()));
  }

  #begin(work: (signals: LoopSignals) => Promise<void>, options: Omit<LoopOptions, "onEnd">): Loop {
    const onEnd = (ended: Running): void => void this.#loops.delete(ended);
    const loop = new Loop(this.#files.work.loops, work, { ...options, onEnd });
    this.#loops.add(loop);
    return loop;
  }
}

function entryOf<S>({ key, state }: Document): readonly [key: string, state: S] {
  return [key, state as S];
}
