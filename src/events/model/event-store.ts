// What a user holds in hand: the event store, its options and its answers.
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
import type { SubjectKeys } from "./subject-keys.ts";

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
  /** True when all of it was there before (same ids, same content): positions are those of the first time. */
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
  /** How the published length is kept. Decided and recorded when the log is created; default: by the kind of file system. */
  mode?: LogMode | undefined;
  /** Of this process, when the log is opened alone; in a store the store's lease counts. Default 30_000. */
  leaseMs?: number | undefined;
  schemas?: EventSchemas<E> | undefined;
  /** Keys of erasable subjects, kept outside the log. */
  keys?: SubjectKeys | undefined;
}

export interface EventStore<E extends NewEvent = NewEvent> extends AsyncDisposable {
  /** Durable when it resolves. APPEND_CONDITION_FAILED with `conflicts`, LOCK_TIMEOUT, OUTCOME_UNKNOWN (append the same ids again). */
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
   * One of all processes that use this name runs it; its checkpoint outlives it. The handler may see an event again after a crash. When it throws, the consumer ends with that
   * error: nothing is tried again by itself, and nothing is skipped. `consume` again goes on with the same batch, also in another process; a handler that is to pass over
   * what it can never do says so by returning.
   */
  consume<const Q extends Query<E["type"]>>(
    name: string,
    query: Q,
    handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
    options?: ConsumerOptions,
  ): EventConsumer;
  /** Re-tags as an appended fact; reads and conditions after it see the tags. */
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
 * Listen to `done` where nobody else would hear of a failure: if it rejects while nobody listens to it and no `waitUntilProcessed` is told, that is an unhandled rejection, and
 * Node ends the process. `stop` does not tell.
 */
export interface EventConsumer extends Running {
  readonly name: string;
  position(): Promise<number>;
  /**
   * Read your writes: resolves when this position is processed, by whichever process. When this consumer has failed before, it rejects as `done` does. LOG_REWOUND when what was
   * processed is no longer in the log.
   */
  waitUntilProcessed(position: number, options?: Cancel): Promise<void>;
}
