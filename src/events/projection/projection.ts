// A read model of a log, as a user holds it: its documents, and the work that keeps them up to
// date.
import type { Cancel, NewEvent, Running } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { Loop, ProgressWaiters, type LoopOptions, type LoopSignals } from "../../part/loop.ts";
import { waitUntilProcessed } from "../../part/progress/wait-until-processed.ts";
import type { EventSource } from "../follow/work-through.ts";
import { accessOf } from "../log/log-access.ts";
import type { EventStore } from "../model/event-store.ts";
import type { Query } from "../model/query.ts";
import { checkDefinition, type Projection, type ProjectionDefinition, type RebuildOptions } from "./definition.ts";
import type { Document } from "./document.ts";
import { DocumentReader } from "./document-reader.ts";
import { ProjectionFiles } from "./generation.ts";
import { ProjectionWork } from "./projection-work.ts";
import { TagIndex } from "./tag-index.ts";

/**
 * Opens the documents of `definition.name` for reading, in this and all other processes. `run` in
 * at least one process keeps them up to date. With a raised version `run` or `rebuild` builds new
 * documents beside the old ones, which are read until then; `waitUntilProcessed` waits for
 * documents of this version or a newer one.
 */
export async function openProjection<S, E extends NewEvent, const Q extends Query<E["type"]> = Query<E["type"]>>(
  store: EventStore<E>,
  definition: ProjectionDefinition<S, E, Q>,
): Promise<Projection<S>> {
  const checked = checkDefinition(definition);
  const files = await ProjectionFiles.open(accessOf(store), checked.name);
  // Sound because a definition gets only events of its own query.
  const source = store as unknown as EventSource;
  return new LogProjection<S>(files, checked.version, new ProjectionWork({ files, definition: checked, source }));
}

class LogProjection<S> implements Projection<S> {
  readonly name: string;
  readonly #files: ProjectionFiles;
  readonly #version: number;
  readonly #reader: DocumentReader;
  readonly #work: ProjectionWork;
  readonly #index: TagIndex;
  readonly #loops = new Set<Running>();
  readonly #waiters = new ProgressWaiters();
  #lastRun: Loop | undefined;

  constructor(files: ProjectionFiles, version: number, work: ProjectionWork) {
    this.name = files.name;
    this.#files = files;
    this.#version = version;
    this.#work = work;
    this.#reader = new DocumentReader(files);
    this.#index = new TagIndex(this.#reader);
  }

  async get(key: string): Promise<S | undefined> {
    // Sound because `apply` made what is in the file.
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
    const { loops, sequence } = this.#files.work;
    // Documents of an older version do not count: this version would have made other ones.
    const findCheckpoint = () => this.#reader.findCheckpoint(this.#version);
    // Failures of `run` only. The caller of `rebuild` hears of its failure, and `run` goes on all
    // the same.
    await this.#waiters.listen((findToldFailure) => {
      const findFailure = () => findToldFailure() ?? this.#lastRun?.failure;
      return waitUntilProcessed(position, { loops, sequence, findCheckpoint, findFailure }, options);
    });
  }

  async rebuild({ onProgress, signal }: RebuildOptions = {}): Promise<void> {
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
      // If `run` was called again since, callers wait for that loop, and not for this one.
      tell: async (failure, failed) => failed === this.#lastRun && (await this.#waiters.tell(failure)),
    });
    return (this.#lastRun = loop);
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
