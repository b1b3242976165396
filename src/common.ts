// The types that all rooms and errors share. Programs import them from "holdfast".
//
// Conventions of the whole API:
// - Durations are numbers of milliseconds and end in `Ms`. Counters (positions, fences, slots) are
//   numbers, checked against 2^53 - 1.
// - The library reports times as `Date`. An event stores its time as an ISO string, because events
//   are plain JSON.
// - Options accept an explicit `undefined`. Results omit a property instead of setting it to
//   `undefined`.
// - A timeout of 0 does not wait; `Infinity` waits without limit. Aborting rejects with the signal's
//   reason.

/** Options of every call that can be cancelled. */
export interface Cancel {
  /** Cancels the call: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}
/** Options of every call that waits. */
export interface Waiting extends Cancel {
  /** How long to wait, in milliseconds. 0 does not wait; `Infinity` waits without limit. */
  timeoutMs?: number | undefined;
}

/** Bytes to write. A string is written as UTF-8. A Node `Readable` or a web `ReadableStream` is an async iterable. */
export type Body = string | Uint8Array | AsyncIterable<Uint8Array>;

/** Bytes to read. Can be read several times until it is disposed of. */
export interface Content {
  /** Reads everything into memory. */
  bytes(): Promise<Uint8Array>;
  /** Reads everything as UTF-8 text. */
  text(): Promise<string>;
  /** Reads in chunks, in constant memory. */
  stream(): AsyncIterable<Uint8Array>;
}

/** Options of every `open…` function. */
export interface OpenOptions {
  /**
   * Creates the store or part if it does not exist. Default true. With false, opening throws
   * NOT_A_STORE, which guards against a share that is not mounted.
   */
  create?: boolean | undefined;
  /** The id that the store or part must have. Throws WRONG_STORE if it has another, NOT_A_STORE if it has none. */
  id?: string | undefined;
}

/** A lock that this process holds until it releases or loses it. */
export interface Hold extends AsyncDisposable {
  /** Aborts with a LOCK_LOST error as soon as this process knows that it lost the lock. */
  readonly signal: AbortSignal;
  /** When the lock was acquired. */
  readonly acquiredAt: Date;
  /** Releases the lock. Calling it again, or after the lock was lost, does nothing. */
  release(): Promise<void>;
}

/** A process that has joined a ground, as other processes see it. */
export interface HolderInfo {
  /** Unique; never reused. */
  readonly id: string;
  /** The `name` that the process passed when it opened the store, if any. */
  readonly name?: string;
  /** Host name of its machine. */
  readonly host: string;
  /** Process id on that machine. */
  readonly pid: number;
  /** When the process started, by its own clock. */
  readonly startedAt: Date;
  /** Time of its last heartbeat, by its own clock. */
  readonly lastSeenAt: Date;
  /** Version of Holdfast that it runs. */
  readonly version: string;
  /** A process that is silent for this long is dead and loses its locks. Absent: it keeps them until it ends. */
  readonly leaseMs?: number;
  /** `silent`: its heartbeat is late, and it is not yet judged dead. */
  readonly state: "alive" | "silent" | "dead";
}

/** `exact`: one path. `tree`: the path and everything below it. */
export type LockMode = "exact" | "tree";

/** A lock that blocks another. */
export interface BlockingLock {
  /** The locked path. */
  readonly path: string;
  /** `exact` for one path, `tree` for everything below it as well. */
  readonly mode: LockMode;
  /** True if several holders may share it. */
  readonly shared: boolean;
  /** The process that holds it. */
  readonly holder: HolderInfo;
  /** When it was requested. */
  readonly since: Date;
  /** The `tag` that its owner passed, if any. */
  readonly tag?: string;
}

/** An event to append. Name your own: `type Sold = NewEvent<"Sold", { sku: string }>`. */
export interface NewEvent<Type extends string = string, Data = unknown> {
  /** Names what happened. */
  type: Type;
  /** JSON data of the event. */
  data: Data;
  /** Queries and conditions select events by tags. Default: none. */
  tags?: readonly string[] | undefined;
  /** JSON data that queries do not consider. Default: empty. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** An id that makes the append idempotent. Default: a new id. */
  id?: string | undefined;
}
/** Properties that an event gets when it is appended. */
export interface Sequencing {
  /** Unique in its log. */
  readonly id: string;
  /** Empty if none were given. */
  readonly tags: readonly string[];
  /** Empty if none was given. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Its number in the log: 1 for the first event, without gaps. */
  readonly position: number;
  /** When it was appended, by the clock of its writer, as an ISO string. */
  readonly time: string;
}
/** An event as the log returns it. */
export type SequencedEvent<E extends NewEvent = NewEvent> = E & Sequencing;

/** A background loop: consumer, adopter or exporter. Disposing of it stops it. */
export interface Running extends AsyncDisposable {
  /** Resolves when `stop` or the signal ended the loop; rejects if an error ended it. */
  readonly done: Promise<void>;
  /**
   * Stops taking new work, waits at most `drainMs` (default 30,000) for work in progress, then
   * abandons the rest.
   */
  stop(options?: { drainMs?: number | undefined }): Promise<void>;
}

/** One finding of `verify`. */
export interface Problem {
  /** `damage`: data is lost or unreadable. `leftover`: a crash left it; harmless. `note`: worth knowing. */
  readonly severity: "damage" | "leftover" | "note";
  /** The file or directory concerned. */
  readonly path: string;
  /** Line in that file, from 1. */
  readonly line?: number;
  /** Byte offset in that file, from 0. */
  readonly byte?: number;
  /** What is wrong. */
  readonly what: string;
  /** What to do about it. */
  readonly remedy: string;
  /** True if this run repaired it. */
  readonly repaired: boolean;
}
/** The result of `verify`, for every format. */
export interface VerifyReport {
  /** True if there is no damage that was not repaired. */
  readonly ok: boolean;
  /** How many records were checked. */
  readonly checked: number;
  /** In the order found; after 1,000, one last problem counts the rest. */
  readonly problems: readonly Problem[];
}
/** Options of `verify`. */
export interface VerifyOptions extends Cancel {
  /** Moves damage aside; never deletes. Default false. */
  repair?: boolean | undefined;
  /** Called now and then with the number of records checked and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/**
 * Which names are accepted in a tree. `portable`: only those that Windows neither refuses nor
 * changes.
 */
export type NameRule = "portable" | "any";
