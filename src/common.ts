// The types that every room and every error shares; re-exported from "holdfast", not a subpath of
// its own.
//
// Conventions of the whole interface:
// - Durations are numbers of milliseconds and end in `Ms`. Counters (positions, fences, slots) are
//   numbers, checked against 2^53 - 1.
// - What the library reports about time is a `Date`; what an event stores is an ISO string, because
//   an event is JSON all through.
// - Option bags accept an explicit `undefined`; results never carry it: a fact that is not there is
//   absent.
// - A wait of 0 never waits; `Infinity` waits for ever. Abort rejects with the signal's reason.

/** What every waiting call takes. */
export interface Cancel {
  signal?: AbortSignal | undefined;
}
export interface Waiting extends Cancel {
  timeoutMs?: number | undefined;
}

/** Bytes going in. A string is text, written as UTF-8. A Node Readable and a web ReadableStream are async iterables. */
export type Body = string | Uint8Array | AsyncIterable<Uint8Array>;

/** Bytes coming out. May be read more than once until it is disposed of. */
export interface Content {
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  stream(): AsyncIterable<Uint8Array>;
}

/** What every `open…` takes. */
export interface OpenOptions {
  /**
   * Make it if it is not there. Default true; false guards against a share that is not mounted
   * (NOT_A_STORE).
   */
  create?: boolean | undefined;
  /**
   * The id that it must have, as its record on the disk says: WRONG_STORE otherwise, NOT_A_STORE
   * where there is none.
   */
  id?: string | undefined;
}

/** Something that is owned until it is released or lost. */
export interface Hold extends AsyncDisposable {
  /**
   * Aborts, with a LOCK_LOST error as its reason, as soon as this process knows that it no longer
   * owns.
   */
  readonly signal: AbortSignal;
  readonly acquiredAt: Date;
  /** Idempotent; releasing what was lost is not an error. */
  release(): Promise<void>;
}

/** A process as others see it. `id` is never used again. */
export interface HolderInfo {
  readonly id: string;
  /** As it was given to `openStore`; absent when none was. */
  readonly name?: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: Date;
  readonly lastSeenAt: Date;
  readonly version: string;
  readonly state: "alive" | "silent" | "dead";
}

export type LockMode = "exact" | "tree";

/** Who stands in the way of a lock. */
export interface BlockingLock {
  readonly path: string;
  readonly mode: LockMode;
  readonly shared: boolean;
  readonly holder: HolderInfo;
  readonly since: Date;
  readonly tag?: string;
}

/** An event to append. Name your own: `type Sold = NewEvent<"Sold", { sku: string }>`. */
export interface NewEvent<Type extends string = string, Data = unknown> {
  type: Type;
  data: Data;
  tags?: readonly string[] | undefined;
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Makes the append idempotent. Default: a new id. */
  id?: string | undefined;
}
export interface Sequencing {
  readonly id: string;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly position: number;
  readonly time: string;
}
export type SequencedEvent<E extends NewEvent = NewEvent> = E & Sequencing;

/** A long-running loop: consumer, adopter, exporter. Disposing drains it. */
export interface Running extends AsyncDisposable {
  /** Resolves when the loop has ended by `stop` or its signal; rejects when it could not go on. */
  readonly done: Promise<void>;
  /**
   * Takes nothing new, waits for what is in hand, at most `drainMs` (default 30_000), then lets go
   * of the rest.
   */
  stop(options?: { drainMs?: number | undefined }): Promise<void>;
}

export interface Problem {
  readonly severity: "damage" | "leftover" | "note";
  readonly path: string;
  readonly line?: number;
  readonly byte?: number;
  readonly what: string;
  readonly remedy: string;
  readonly repaired: boolean;
}
/** What `verify` and `fsck` answer, for every format. */
export interface VerifyReport {
  readonly ok: boolean;
  readonly checked: number;
  readonly problems: readonly Problem[];
}
export interface VerifyOptions extends Cancel {
  /** Moves damage aside; never deletes. Default false. */
  repair?: boolean | undefined;
  onProgress?: ((done: number, total: number) => void) | undefined;
}
