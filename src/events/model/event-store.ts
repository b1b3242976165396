// The interface of an event store, with its options and results.
import type {
  Cancel,
  HolderInfo,
  NewEvent,
  OpenOptions,
  Running,
  SequencedEvent,
  VerifyOptions,
  VerifyReport,
} from "../../common.ts";
import type { Matching, Query } from "./query.ts";
import type { EventSchemas } from "./schema.ts";
import type { TimeOptions } from "./time-window.ts";

export type { Moment, TimeBound, TimeOptions } from "./time-window.ts";

/** The condition of an append: no event that matches may follow the given position. */
export interface AppendCondition<Type extends string = string> {
  /** The append fails if an event after `after` matches this query. */
  failIfEventsMatch: Query<Type>;
  /** The position up to which you have read. Default 0: no event may match at all. */
  after?: number | undefined;
}
/** Options of `append`. */
export interface AppendOptions<Type extends string = string> extends Cancel {
  /** Appends only if this condition holds. Default: none. */
  condition?: AppendCondition<Type> | undefined;
  /** How long to wait for the lock. Default: the `lockTimeoutMs` of the log. */
  timeoutMs?: number | undefined;
}
/** The result of an append. */
export interface Appended {
  /** Position of the first event. */
  readonly first: number;
  /** Position of the last event. */
  readonly last: number;
  /**
   * True if these events were appended before, with the same ids and content. The positions are
   * those of that append.
   */
  readonly repeated: boolean;
}
/** Options of `read`. */
export interface ReadOptions extends Cancel, TimeOptions {
  /** Reads events after this position. Default 0. */
  after?: number | undefined;
  /** Reads events up to and including this position. Default: the head when the read begins. */
  upTo?: number | undefined;
  /** Reads the newest events first. Default false. */
  backwards?: boolean | undefined;
  /** The largest number of events to read. Default: all. */
  limit?: number | undefined;
}

/** How the log publishes its length: `local` for one machine, `share` between machines. */
export type LogMode = "local" | "share";

/** Options of `openEvents`. */
export interface EventStoreOptions<E extends NewEvent = NewEvent> extends OpenOptions {
  /** How long an append waits for the lock. Default 5,000. There is no option to append without the lock. */
  lockTimeoutMs?: number | undefined;
  /**
   * `fsync` syncs every append before it is acknowledged; `none` leaves that to the operating
   * system. Default `fsync`.
   */
  durability?: "fsync" | "none" | undefined;
  /**
   * How the log publishes its length. Recorded when the log is created. Default: by the kind of
   * file system. A log in a database throws UNSUPPORTED.
   */
  mode?: LogMode | undefined;
  /**
   * A process that is silent for this long is dead, and another takes over its consumers. In a
   * store, the lease of the store counts. Default 30,000.
   */
  leaseMs?: number | undefined;
  /** Schemas and versions of the event types. Default: none. */
  schemas?: EventSchemas<E> | undefined;
  /** Keys of erasable subjects, which are stored outside the log. Default: none. */
  keys?: SubjectKeys | undefined;
}

/** An event log. After `close` every method throws CLOSED. */
export interface EventStore<E extends NewEvent = NewEvent> extends AsyncDisposable {
  /**
   * Appends one or several events, all or none. They are durable when the promise resolves.
   *
   * Throws APPEND_CONDITION_FAILED with `conflicts`, EVENT_INVALID, EVENT_ID_REUSED, TOO_LARGE,
   * LOCK_TIMEOUT, and OUTCOME_UNKNOWN with `ids`: append the same ids again.
   *
   * @example
   * ```ts
   * const query = { tags: ["seat:12"] };
   * let after = 0;
   * for await (const { position } of events.read(query)) after = position;
   * await events.append(
   *   { type: "Reserved", data: { seat: 12 }, tags: ["seat:12"] },
   *   { condition: { failIfEventsMatch: query, after } },
   * );
   * ```
   */
  append(events: E | readonly E[], options?: AppendOptions<E["type"]>): Promise<Appended>;
  /**
   * Reads the events of a query in the order of their positions. It takes no lock, sees whole
   * appends, and ends at the head at which it began. `since` and `until` select by recorded `time`;
   * clocks differ between machines, so times need not rise with positions. Throws CORRUPT.
   */
  read<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options?: ReadOptions,
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  /** Returns the last event of a query, or undefined if there is none. Throws CORRUPT. */
  last<const Q extends Query<E["type"]> = "all">(query?: Q): Promise<SequencedEvent<Matching<E, Q>> | undefined>;
  /** Returns the position of the last event; 0 for an empty log. */
  head(): Promise<number>;
  /**
   * Returns the size of the log on the disk in bytes, without indexes and read models. On
   * PostgreSQL it is an estimate from the newest events.
   */
  bytes(): Promise<number>;
  /**
   * Reads the events of a query after `after` (default 0), then waits for new ones. Ends only by
   * `signal` or `break`; throws CLOSED if the store is closed.
   */
  subscribe<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options?: Cancel & { after?: number | undefined },
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  /**
   * Starts a consumer: of all processes that use this name, one runs the handler at a time. Its
   * checkpoint outlives the process; after a crash the handler may see an event again.
   *
   * If the handler throws, the consumer ends with that error: it neither retries nor skips. Calling
   * `consume` again, here or in another process, continues with the same batch. To skip an event
   * that can never be handled, return from the handler. `done` rejects with LOG_REWOUND if the log
   * no longer contains the checkpoint.
   */
  consume<const Q extends Query<E["type"]>>(
    name: string,
    query: Q,
    handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
    options?: ConsumerOptions,
  ): EventConsumer;
  /**
   * Lists all consumers that were ever started on this log, by name, with their progress and the
   * process that runs each. A consumer whose checkpoint cannot be read is listed with its
   * `problem`. Throws IO_ERROR.
   */
  consumers(): Promise<ConsumerInfo[]>;
  /**
   * Adds tags to existing events, as an appended fact that later reads and conditions see. Throws
   * EVENT_INVALID for an invalid tag, LOCK_TIMEOUT, and a RangeError if there is no event at a
   * position.
   */
  addTags(positions: readonly number[], tags: readonly string[], options?: Cancel): Promise<void>;
  /**
   * Checks every line of the log, its indexes, its consumers and its read models. `repair` keeps
   * all intact events.
   */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Stops its consumers and closes the log. */
  close(): Promise<void>;
}

/** Options of `consume`. */
export interface ConsumerOptions extends Cancel {
  /** The largest number of events that one call of the handler receives, at most 100,000. Default 1. */
  batch?: number | undefined;
  /** The position after which a new name starts; `head` starts with new events only. Default 0. */
  from?: number | "head" | undefined;
}
/** A consumer as `consumers` lists it. */
export interface ConsumerInfo {
  /** The name of the consumer. */
  readonly name: string;
  /** It has processed all events up to this position. Absent if its checkpoint cannot be read. */
  readonly position?: number;
  /**
   * Number of events after `position`, including those that its query does not match. Absent
   * without `position`.
   */
  readonly lag?: number;
  /** The process that runs it. Absent if none does. */
  readonly holder?: HolderInfo;
  /** When `holder` took over, by the clock of that machine. */
  readonly since?: Date;
  /** Processes that wait to take over. */
  readonly waiting: readonly HolderInfo[];
  /** Why its checkpoint cannot be read, and what to do. */
  readonly problem?: string;
}
/**
 * A running consumer. Handle rejections of `done`: a rejection that neither `done` nor
 * `waitUntilProcessed` reported to your code is unhandled, and Node ends the process. `stop` does
 * not report it.
 */
export interface EventConsumer extends Running {
  /** The name of the consumer. */
  readonly name: string;
  /** Returns the position up to which all events are processed, in any process. */
  position(): Promise<number>;
  /**
   * Waits until this position is processed, in any process, so that you can read your own writes.
   * Rejects as `done` does if this consumer fails first, and with LOG_REWOUND if processed events
   * are no longer in the log.
   */
  waitUntilProcessed(position: number, options?: Cancel): Promise<void>;
}

/**
 * Keys of subjects whose data can be erased. They are stored outside the log, which is never
 * rewritten: without its key, the data of a subject cannot be read. `openSubjectKeys` stores them
 * in a directory; you can implement it with a vault or a database. A key has 32 random bytes.
 */
export interface SubjectKeys {
  /**
   * Returns the key of a subject, or undefined if it has none. Called at each read of personal
   * data, so that a key that was deleted anywhere is gone everywhere.
   */
  find(subject: string): Promise<Uint8Array | undefined>;
  /**
   * Creates the key of a subject. Called when personal data is appended and `find` returned no key.
   * Concurrent callers get the same key, which is durable when the promise resolves.
   */
  create(subject: string): Promise<Uint8Array>;
  /**
   * Deletes the key of a subject permanently. After this, no process can read the data that was
   * encrypted with it.
   */
  forget(subject: string): Promise<void>;
}
