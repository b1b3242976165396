// The event store as a user holds it: its methods, options and answers.
import type {
  Cancel,
  NewEvent,
  OpenOptions,
  Running,
  SequencedEvent,
  VerifyOptions,
  VerifyReport,
} from "../../common.ts";
import type { Matching, Query } from "./query.ts";
import type { EventSchemas } from "./schema.ts";

export interface AppendCondition<Type extends string = string> {
  failIfEventsMatch: Query<Type>;
  after?: number | undefined;
}
export interface AppendOptions<Type extends string = string> extends Cancel {
  condition?: AppendCondition<Type> | undefined;
  /** For this call, over `lockTimeoutMs` of the store. */
  timeoutMs?: number | undefined;
}
export interface Appended {
  readonly first: number;
  readonly last: number;
  /**
   * True when these events were appended before (same ids, same content). The positions are those
   * of that append.
   */
  readonly repeated: boolean;
}
export interface ReadOptions extends Cancel {
  /** Exclusive. Default 0. */
  after?: number | undefined;
  /** Inclusive. Default: the head when reading begins. */
  upTo?: number | undefined;
  backwards?: boolean | undefined;
  limit?: number | undefined;
}

/** How the published length is kept. */
export type LogMode = "local" | "share";

export interface EventStoreOptions<E extends NewEvent = NewEvent> extends OpenOptions {
  /** Default 5_000. There is no option to append without the lock. */
  lockTimeoutMs?: number | undefined;
  /** Default "fsync". */
  durability?: "fsync" | "none" | undefined;
  /**
   * How the published length is kept. Recorded when the log is created; default: by the kind of
   * file system.
   */
  mode?: LogMode | undefined;
  /**
   * Of this process, when the log is opened alone; in a store the store's lease counts. Default
   * 30_000.
   */
  leaseMs?: number | undefined;
  schemas?: EventSchemas<E> | undefined;
  /** Keys of erasable subjects, kept outside the log. */
  keys?: SubjectKeys | undefined;
}

export interface EventStore<E extends NewEvent = NewEvent> extends AsyncDisposable {
  /**
   * Durable when it resolves. APPEND_CONDITION_FAILED with `conflicts`, LOCK_TIMEOUT,
   * OUTCOME_UNKNOWN (append the same ids again).
   */
  append(events: E | readonly E[], options?: AppendOptions<E["type"]>): Promise<Appended>;
  /** Takes no lock, sees whole batches, ends at the head it began with. */
  read<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options?: ReadOptions,
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  last<const Q extends Query<E["type"]> = "all">(query?: Q): Promise<SequencedEvent<Matching<E, Q>> | undefined>;
  /** 0 when empty. */
  head(): Promise<number>;
  /** Catches up, then stays. Ends only by `signal` or `break`. */
  subscribe<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options?: Cancel & { after?: number | undefined },
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  /**
   * One of all processes that use this name runs the handler, and its checkpoint outlives the
   * process. After a crash the handler may see an event again. When the handler throws, the
   * consumer ends with that error: nothing is tried again by itself, and nothing is skipped.
   * Calling `consume` again, here or in another process, goes on with the same batch. To pass over
   * an event that can never be handled, the handler returns.
   */
  consume<const Q extends Query<E["type"]>>(
    name: string,
    query: Q,
    handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
    options?: ConsumerOptions,
  ): EventConsumer;
  /** Adds tags to events, as an appended fact. Reads and conditions after it see the tags. */
  addTags(positions: readonly number[], tags: readonly string[], options?: Cancel): Promise<void>;
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  close(): Promise<void>;
}

export interface ConsumerOptions extends Cancel {
  /** Default 1. */
  batch?: number | undefined;
  /** Where a new name starts. Default 0; "head": only what comes. */
  from?: number | "head" | undefined;
}
/**
 * Listen to `done`. If it rejects without a listener, and no `waitUntilProcessed` was told of the
 * failure, that is an unhandled rejection, and Node ends the process. `stop` does not tell of it.
 */
export interface EventConsumer extends Running {
  readonly name: string;
  position(): Promise<number>;
  /**
   * Read your writes: resolves when this position is processed, in any process. Rejects as `done`
   * does when this consumer has failed before that. LOG_REWOUND when processed events are no longer
   * in the log.
   */
  waitUntilProcessed(position: number, options?: Cancel): Promise<void>;
}

/**
 * Keys of subjects whose data can be forgotten. They are kept outside the log, which is never
 * rewritten: without its key the data of a subject cannot be read. `openSubjectKeys` keeps them in
 * a directory; a vault or a database does as well. A key has 32 random bytes.
 */
export interface SubjectKeys {
  /**
   * Called at each read of personal data, so that a key that was forgotten anywhere is gone
   * everywhere. Undefined: no key.
   */
  find(subject: string): Promise<Uint8Array | undefined>;
  /**
   * Called when personal data is appended and `find` knows no key. All callers at once get the same
   * key, durable when it resolves.
   */
  create(subject: string): Promise<Uint8Array>;
  /** After this no process can read what was encrypted for the subject. */
  forget(subject: string): Promise<void>;
}
