// The definition of a read model, and what a user gets of it: documents by key, folded from events.
import type { Cancel, NewEvent, Running, SequencedEvent } from "../../common.ts";
import { checkOptions, type OptionNames } from "../../format/known-options.ts";
import { mustBeState } from "../model/state.ts";
import { findJsonLoss } from "../../format/json-loss.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";

/**
 * `key`, `apply`, `tags` and `related` depend on their arguments alone and return no promises:
 * every process that folds the same events gets the same documents. A state is plain JSON, because
 * the next `apply` gets it from its file: no dates, maps or sets, no objects of a class. Any other
 * state ends the work with a TypeError.
 */
export interface ProjectionDefinition<S, E extends NewEvent, Q extends Query<E["type"]> = Query<E["type"]>> {
  name: string;
  /** Raise it to rebuild. Default 1. */
  version?: number | undefined;
  /**
   * Narrows the events that `key`, `apply` and `related` get: `{ types: ["Sold"] }` gives only
   * Sold.
   */
  query: Q;
  /** The documents that an event touches. */
  key: (event: SequencedEvent<Matching<E, Q>>) => string | readonly string[] | undefined;
  /** Undefined deletes. */
  apply: (state: S | undefined, event: SequencedEvent<Matching<E, Q>>, key: string) => S | undefined;
  tags?: ((state: S) => readonly string[]) | undefined;
  /**
   * Further events that `apply` needs for a document: a second query, applied in position order.
   * When an event touches a document, the earlier events of `related(event)` that this document has
   * not seen are applied first. They begin at the start of the log if the query is new to the
   * document, and otherwise where the same query was read last. No event is applied twice, and none
   * that touches the document by itself. Later related events are applied when the document is
   * touched next. A document that was deleted has seen nothing.
   */
  related?: ((event: SequencedEvent<Matching<E, Q>>) => Query | undefined) | undefined;
}

export interface Projection<S> extends AsyncDisposable {
  readonly name: string;
  get(key: string): Promise<S | undefined>;
  /**
   * Each document whole, none older than when the iteration began. Documents that are made
   * meanwhile may be missing. RESOURCE_BUSY when the read model was rebuilt after the first
   * document was given out: read again.
   */
  all(): AsyncIterable<readonly [key: string, state: S]>;
  /** The documents that have all of these tags; as `all`. */
  byTags(tags: readonly string[]): AsyncIterable<readonly [key: string, state: S]>;
  position(): Promise<number>;
  /** As with a consumer. Rejects when the last `run` of this object has failed. */
  waitUntilProcessed(position: number, options?: Cancel): Promise<void>;
  /**
   * Builds a new generation beside the old one, then switches; resumes after a crash. NEWER_FORMAT
   * when a program with a newer version has taken over.
   */
  rebuild(options?: RebuildOptions): Promise<void>;
  /**
   * Keeps the documents up to date; one of all processes does the work. It ends with NEWER_FORMAT
   * when a program with a newer version has taken over, and with any error that the definition
   * throws: nothing is tried again by itself, and no event is left out. As with a consumer, listen
   * to `done`.
   */
  run(options?: Cancel): Running;
}

export interface RebuildOptions extends Cancel {
  /** Called in the process that does the work, which may be another one. */
  onProgress?: ((position: number, head: number) => void) | undefined;
}

const definitionNames: OptionNames<ProjectionDefinition<unknown, NewEvent>> = {
  name: true,
  version: true,
  query: true,
  key: true,
  apply: true,
  tags: true,
  related: true,
};

/** A definition that was checked, with its defaults and without its types. */
export interface CheckedDefinition {
  readonly name: string;
  readonly version: number;
  readonly query: Query;
  readonly keysOf: (event: SequencedEvent) => readonly string[];
  readonly apply: (state: unknown, event: SequencedEvent, key: string) => unknown;
  /** TypeError for a state that would come back from its file as another one. */
  readonly checkState: (state: unknown, position: number) => void;
  readonly tagsOf: (state: unknown) => readonly string[];
  readonly findRelated: (event: SequencedEvent) => Query | undefined;
}

export function checkDefinition<S, E extends NewEvent, Q extends Query<E["type"]>>(
  definition: ProjectionDefinition<S, E, Q>,
): CheckedDefinition {
  checkOptions<object>("openProjection", definition, definitionNames);
  const { name, version = 1, query } = definition;
  itemsOf(query);
  if (!(Number.isSafeInteger(version) && version >= 1))
    throw new RangeError(`The version of a projection is a whole number from 1, not ${version}.`);
  for (const part of ["key", "apply"] as const)
    if (typeof definition[part] !== "function") throw new TypeError(`The projection ${name} needs \`${part}\`.`);
  // Sound because the functions get only events of the query, and states that they have made.
  const { key, apply, tags, related } = definition as unknown as ProjectionDefinition<unknown, NewEvent>;
  return {
    name,
    version,
    query,
    keysOf: (event) => textsOf(key(event), `The key of the projection ${name} at event ${event.position}`),
    apply: (state, event, documentKey) =>
      mustBeState(apply(state, event, documentKey), `the projection ${name}`, event.position),
    checkState: (state, position) =>
      checkState(state, `The state that the projection ${name} has made at event ${position}`),
    tagsOf: (state) => textsOf(tags?.(state), `The tags of a document of the projection ${name}`),
    findRelated: (event) => related?.(event),
  };
}

function textsOf(value: string | readonly string[] | undefined, what: string): readonly string[] {
  const texts = value === undefined ? [] : typeof value === "string" ? [value] : value;
  if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string"))
    throw new TypeError(`${what} must be text, or a list of texts.`);
  return [...new Set<string>(texts)];
}

function checkState(state: unknown, what: string): void {
  const loss = lossOf(state);
  if (loss !== undefined) throw new TypeError(`${what} must be plain JSON, and ${loss}.`);
}

function lossOf(state: unknown): string | undefined {
  try {
    // First, because it finds circular references.
    if (JSON.stringify(state) === undefined) return `it is a ${typeof state}`;
  } catch (error) {
    return `is not: ${error instanceof Error ? error.message : String(error)}`;
  }
  return findJsonLoss(state, "state", "plain");
}
