// The subpath "holdfast/postgres": stores in a PostgreSQL database.
import type pg from "pg";
import type { HolderInfo, NewEvent } from "../common.ts";
import type { EventStore, EventStoreOptions } from "../events/model/event-store.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import type { Handoff, HandoffOptions } from "../handoff/model/handoff.ts";
import type { PathLocks } from "../locks/path/path-locks.ts";
import type { StoreLock, StoreLockOptions } from "../locks/store/store-lock.ts";
import type { ObjectStore, ObjectStoreOptions } from "../objects/model/object-store.ts";
import { nodeClock } from "../ports/node/clock.ts";
import { openNodeHost } from "../ports/node/host.ts";
import { makeScratch } from "../ports/node/scratch.ts";
import { nodeRandom } from "../ports/node/random.ts";
import { Database } from "./connection/database.ts";
import { PgStore, type PgLocksOptions, type PostgresCapabilities, type PostgresOptions } from "./pg-store.ts";
import { migrate } from "./schema/migrations.ts";

export type { HolderInfo, OpenOptions } from "../common.ts";
export type { PgLocksOptions, PostgresCapabilities, PostgresOptions } from "./pg-store.ts";

/** A location in PostgreSQL, as `postgres://user@host/db?store=shop`, or a pool of the driver `pg`. */
export type PostgresTarget = string | URL | pg.Pool;
/** @deprecated Use `PostgresTarget`. */
export type PostgresPlace = PostgresTarget;

/** Options of `PostgresStore.events`. `lockTimeoutMs`, `durability` and `create` default to those of the store. */
export type PostgresEventsOptions<E extends NewEvent = NewEvent> = Omit<
  EventStoreOptions<E>,
  "leaseMs" | "mode" | "id"
>;

/** Options of `PostgresStore.handoff`. `durability` and `create` default to those of the store. */
export type PostgresHandoffOptions = Omit<HandoffOptions, "leaseMs" | "id">;

/** An open store in a database. Parts open on first use and are shared. */
export interface PostgresStore extends AsyncDisposable {
  /** The location, without the password. */
  readonly location: string;
  /** The id of the store. It never changes. */
  readonly id: string;
  /** The version of the server, and warnings about its settings. */
  readonly capabilities: PostgresCapabilities;
  /** Opens an event log. `log` is its name; default "main". */
  events<E extends NewEvent = NewEvent>(log?: string, options?: PostgresEventsOptions<E>): Promise<EventStore<E>>;
  /** Opens a hand-off box. `box` is its name; default "main". */
  handoff(box?: string, options?: PostgresHandoffOptions): Promise<Handoff>;
  /** Opens the object store: buckets of versioned objects. */
  objects(options?: ObjectStoreOptions): Promise<ObjectStore>;
  /** Opens path locks. Their paths are names in NFC, case-sensitive: there is no tree. */
  locks(options?: PgLocksOptions): Promise<PathLocks>;
  /** Opens the lock of the store, which admits one writer at a time. */
  storeLock(options?: Pick<StoreLockOptions, "timeoutMs">): Promise<StoreLock>;
  /** Lists the processes that have joined the store. */
  holders(): Promise<HolderInfo[]>;
  /** Finishes work in progress, releases all locks, and closes all parts. A pool of the caller stays open. */
  close(): Promise<void>;
}

const postgresOptions: OptionNames<PostgresOptions> = {
  store: true,
  create: true,
  id: true,
  leaseMs: true,
  lockTimeoutMs: true,
  durability: true,
  name: true,
};

/**
 * Opens a store in a database, and makes its schema in an empty one. Needs the package `pg`.
 *
 * Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create` and `id` ask for, NOT_A_STORE also
 * if there is no such database, NEWER_FORMAT for the schema of a newer release, UNSUPPORTED if `holdfast
 * upgrade` must migrate the schema or `pg` is not installed, NO_PERMISSION, RESOURCE_BUSY if every connection
 * is in use, and IO_ERROR if the server does not answer.
 *
 * @example
 * ```ts
 * await using store = await openPostgres("postgres://shop@localhost/shop");
 * const events = await store.events("main");
 * await events.append({ type: "Opened", data: {} });
 * ```
 */
export async function openPostgres(target: PostgresTarget, options: PostgresOptions = {}): Promise<PostgresStore> {
  checkOptions("openPostgres", options, postgresOptions);
  const ports = { clock: nodeClock, random: nodeRandom, host: await openNodeHost(), makeScratch };
  return await PgStore.open(target, options, ports);
}

/**
 * Brings the schema of a database up to this release, and creates it in an empty one. Returns the
 * numbers of the versions that it added; an empty list if the schema is of this release or a newer
 * one. Throws NO_PERMISSION if the role may not create tables.
 */
export async function upgradePostgres(target: PostgresTarget): Promise<number[]> {
  const database = await Database.open(target, nodeClock);
  try {
    return await migrate(database);
  } finally {
    await database.close();
  }
}
