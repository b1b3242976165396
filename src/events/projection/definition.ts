// The definition of a read model, and its public interface: documents by key, folded from events.
import { messageOf } from "../../errors.ts";
import type { Cancel, NewEvent, Running, SequencedEvent } from "../../common.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { mustBeState } from "../model/state.ts";
import { findJsonLoss } from "../../format/json-loss.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";

/**
 * The definition of a read model: documents by key, computed from events. `key`, `apply`, `tags`
 * and `related` are synchronous and depend on their arguments alone, so every process computes the
 * same documents.
 *
 * A state is plain JSON: no dates, maps, sets or objects of a class. Any other state ends `run`
 * with a TypeError.
 */
export interface ProjectionDefinition<S, E extends NewEvent, Q extends Query<E["type"]> = Query<E["type"]>> {
  /** The name of the read model. */
  name: string;
  /**
   * Raise it when the documents change: their shape, or the result of `apply`. Each program reads
   * the documents of its own version. Default 1.
   */
  version?: number | undefined;
  /**
   * The oldest version whose documents this program can also read. Until its own documents are
   * complete it reads those, instead of throwing RESOURCE_BUSY. At the switch `position` may go
   * back a little, because the older documents are kept up to date meanwhile. Default: `version`.
   */
  readsFrom?: number | undefined;
  /** The events of the read model; narrows the events that `key`, `apply` and `related` receive. */
  query: Q;
  /** Returns the keys of the documents that an event changes. */
  key: (event: SequencedEvent<Matching<E, Q>>) => string | readonly string[] | undefined;
  /** Returns the document after the event; undefined deletes it. */
  apply: (state: S | undefined, event: SequencedEvent<Matching<E, Q>>, key: string) => S | undefined;
  /** Returns the tags of a document, for `byTags`. Default: none. */
  tags?: ((state: S) => readonly string[]) | undefined;
  /**
   * Returns a second query for further events that `apply` needs for a document. Earlier events of
   * that query that the document has not yet seen are applied first, in the order of their
   * positions; later ones when the document is changed next. No event is applied twice.
   *
   * The document reads a new query from the start of the log, and a known one from where it was
   * last read. A deleted document has seen nothing. Default: none.
   */
  related?: ((event: SequencedEvent<Matching<E, Q>>) => Query | undefined) | undefined;
}

/** A read model. Disposing of it stops its `run`. */
export interface Projection<S> extends AsyncDisposable {
  /** The name of the read model. */
  readonly name: string;
  /**
   * Returns the document of this key, or undefined if there is none. It was built by this version
   * of the definition, or one from `readsFrom` on.
   *
   * Throws RESOURCE_BUSY while only documents of an older version are complete, and NEWER_FORMAT if
   * the documents of this version were removed: by `dropOlder`, or because a program is three
   * versions ahead.
   */
  get(key: string): Promise<S | undefined>;
  /**
   * Iterates over all documents. None is older than the start of the iteration; documents that are
   * created meanwhile may be missing. Throws as `get` does, and RESOURCE_BUSY if the read model was
   * rebuilt after the first document: read again.
   */
  all(): AsyncIterable<readonly [key: string, state: S]>;
  /** Iterates over the documents that have all of these tags. Throws as `all` does. */
  byTags(tags: readonly string[]): AsyncIterable<readonly [key: string, state: S]>;
  /** Returns the position up to which the documents are complete. Throws as `get` does. */
  position(): Promise<number>;
  /**
   * Waits until the documents of this version contain this position. Rejects if the last `run` of
   * this object failed, and with NEWER_FORMAT as `get` does.
   */
  waitUntilProcessed(position: number, options?: Cancel): Promise<void>;
  /**
   * Builds new documents beside the old ones, then switches. A repeated call continues after a
   * crash. Throws NEWER_FORMAT if a program with a newer version has taken over.
   */
  rebuild(options?: ProjectionRebuildOptions): Promise<void>;
  /**
   * Keeps the documents of this version up to date; one of all processes with this version does the
   * work at a time. Handle rejections of `done`: NEWER_FORMAT if the documents were removed, and
   * any error of the definition. It neither retries nor skips an event.
   */
  run(options?: Cancel): Running;
  /**
   * Ends a rolling upgrade: removes the documents of older versions. Programs that still read them
   * get NEWER_FORMAT. Until the documents of this version are complete, those that are read
   * meanwhile stay.
   */
  dropOlder(): Promise<void>;
}

/** Options of `Projection.rebuild`. */
export interface ProjectionRebuildOptions extends Cancel {
  /**
   * Called now and then with the position and the head, in the process that does the work, which
   * may be another one.
   */
  onProgress?: ((position: number, head: number) => void) | undefined;
}

const definitionNames: OptionNames<ProjectionDefinition<unknown, NewEvent>> = {
  name: true,
  version: true,
  readsFrom: true,
  query: true,
  key: true,
  apply: true,
  tags: true,
  related: true,
};

/** A checked definition, with its defaults and without its types. */
export interface CheckedDefinition {
  readonly name: string;
  readonly version: number;
  readonly readsFrom: number;
  readonly query: Query;
  readonly keysOf: (event: SequencedEvent) => readonly string[];
  readonly apply: (state: unknown, event: SequencedEvent, key: string) => unknown;
  /** Throws a TypeError for a state that would change when it is stored and read back. */
  readonly checkState: (state: unknown, position: number) => void;
  readonly tagsOf: (state: unknown) => readonly string[];
  readonly findRelated: (event: SequencedEvent) => Query | undefined;
}

export function checkDefinition<S, E extends NewEvent, Q extends Query<E["type"]>>(
  definition: ProjectionDefinition<S, E, Q>,
): CheckedDefinition {
  checkOptions<object>("openProjection", definition, definitionNames);
  const { name, version = 1, readsFrom = version, query } = definition;
  itemsOf(query);
  if (!(Number.isSafeInteger(version) && version >= 1))
    throw new RangeError(`The version of a projection must be a whole number from 1, not ${version}.`);
  if (!(Number.isSafeInteger(readsFrom) && readsFrom >= 1 && readsFrom <= version))
    throw new RangeError(`readsFrom of a projection must be a whole number from 1 to its version, not ${readsFrom}.`);
  for (const part of ["key", "apply"] as const)
    if (typeof definition[part] !== "function") throw new TypeError(`The projection ${name} needs \`${part}\`.`);
  // Safe, because the functions get only events of the query, and states that they have returned.
  const { key, apply, tags, related } = definition as unknown as ProjectionDefinition<unknown, NewEvent>;
  return {
    name,
    version,
    readsFrom,
    query,
    keysOf: (event) => textsOf(key(event), `The key of the projection ${name} at event ${event.position}`),
    apply: (state, event, documentKey) =>
      mustBeState(apply(state, event, documentKey), `the projection ${name}`, event.position),
    checkState: (state, position) =>
      checkState(state, `The state that the projection ${name} returned at event ${position}`),
    tagsOf: (state) => textsOf(tags?.(state), `The tags of a document of the projection ${name}`),
    findRelated: (event) => related?.(event),
  };
}

function textsOf(value: string | readonly string[] | undefined, what: string): readonly string[] {
  const texts = value === undefined ? [] : typeof value === "string" ? [value] : value;
  if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string"))
    throw new TypeError(`${what} must be a string, or a list of strings.`);
  return [...new Set<string>(texts)];
}

function checkState(state: unknown, what: string): void {
  const loss = lossOf(state);
  if (loss !== undefined) throw new TypeError(`${what} must be plain JSON, but ${loss}.`);
}

function lossOf(state: unknown): string | undefined {
  try {
    // Check this first, because it finds circular references.
    if (JSON.stringify(state) === undefined) return `it is a ${typeof state}`;
  } catch (error) {
    return `it is not: ${messageOf(error)}`;
  }
  return findJsonLoss(state, "state", "plain");
}
