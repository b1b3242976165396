// PgStore: a store in a database, with one pool, one session and one heartbeat for all of its parts.
import type { HolderInfo, NewEvent, OpenOptions } from "../common.ts";
import { createCodec } from "../events/erasure/erasure-codec.ts";
import type { EventStore, EventStoreOptions } from "../events/model/event-store.ts";
import { holdfastError } from "../errors.ts";
import { cleanPath, pathKey } from "../format/path-key.ts";
import { fileNameOf } from "../format/name.ts";
import type { Handoff, HandoffOptions } from "../handoff/model/handoff.ts";
import { checkHandoffOptions } from "../handoff/model/handoff-options.ts";
import type { Keys } from "../locks/naming/lock-key.ts";
import type { PathLocksOptions } from "../locks/path/path-locks.ts";
import { TablePathLocks } from "../locks/path/table-path-locks.ts";
import { tableStoreLock, type StoreLock, type StoreLockOptions } from "../locks/store/store-lock.ts";
import type { LeaseGround, NameLocks } from "../part/leases.ts";
import { nameKeys } from "../part/leases.ts";
import { SharedParts } from "../part/shared-parts.ts";
import { checkStoreOptions as checkObjectOptions } from "../objects/model/arguments.ts";
import type { ObjectStore, ObjectStoreOptions } from "../objects/model/object-store.ts";
import type { Ports } from "../ports/ports.ts";
import { Database } from "./connection/database.ts";
import { logRows, PgEvents } from "./events/pg-events.ts";
import { PgBox, boxRows, type MakeScratch } from "./handoff/pg-box.ts";
import { PgHandoff } from "./handoff/pg-handoff.ts";
import { PgGround } from "./liveness/pg-ground.ts";
import { PgLockTable } from "./locks/pg-lock-table.ts";
import { PgObjects } from "./objects/pg-objects.ts";
import { openPart } from "./parts.ts";
import { openSchema } from "./schema/migrations.ts";
import { Signals } from "./signals.ts";
import { findWarnings } from "./warnings.ts";

/** Options of `openPostgres`. */
export interface PostgresOptions extends OpenOptions {
  /** The name of the store in the database. Default: the `store` of the location, or "main". */
  store?: string | undefined;
  /** How long this process may be silent before others take it for dead. Default 30,000. */
  leaseMs?: number | undefined;
  /** How long a part waits for internal locks, such as the right to append. Default 5,000. */
  lockTimeoutMs?: number | undefined;
  /** "fsync" acknowledges after the server has synced; "none" does not wait for that. Default "fsync". */
  durability?: "fsync" | "none" | undefined;
  /** Shown to other processes, for example "till 3". Default: none. */
  name?: string | undefined;
}

/** What the server is, and how far its settings can be trusted. */
export interface PostgresCapabilities {
  /** The version of the server. */
  readonly server: string;
  /** For people: each promise that is weaker than it seems, the consequence, and the remedy. */
  readonly warnings: readonly string[];
}

export interface PgPorts extends Pick<Ports, "clock" | "random" | "host"> {
  readonly makeScratch: MakeScratch;
}

/** Options of `PostgresStore.locks`. `timeoutMs` is that of every acquire; default 0: does not wait. */
export type PgLocksOptions = Pick<PathLocksOptions, "timeoutMs">;

/** To list locks only: nothing is written. */
interface ListOnly {
  readonly listOnly?: boolean | undefined;
}

/** Paths are names: there is no tree to check, and no link to follow. */
const pathKeys: Keys = {
  clean: cleanPath,
  locate: async (path) => ({ path, key: keyOf(path) }),
  keyOf: async (path) => keyOf(path),
};

function keyOf(path: string): string {
  return pathKey(path, { caseSensitive: true });
}

export class PgStore {
  /** The location without its password. */
  readonly location: string;
  /** The id never changes. */
  readonly id: string;
  readonly capabilities: PostgresCapabilities;
  readonly ground: PgGround;
  readonly #store: string;
  readonly #options: PostgresOptions;
  readonly #ports: PgPorts;
  readonly #parts: SharedParts;

  private constructor(
    ground: PgGround,
    store: string,
    options: PostgresOptions,
    ports: PgPorts,
    found: PostgresCapabilities,
  ) {
    this.location = ground.location;
    this.id = ground.id;
    this.ground = ground;
    this.capabilities = found;
    this.#store = store;
    this.#options = options;
    this.#ports = ports;
    this.#parts = new SharedParts(this.location);
  }

  static async open(
    where: Parameters<typeof Database.open>[0],
    options: PostgresOptions,
    ports: PgPorts,
  ): Promise<PgStore> {
    const database = await Database.open(where, ports.clock);
    try {
      const { store = database.location.store, create = true, id, leaseMs, name } = options;
      await openSchema(database, { create: create && id === undefined });
      const part = await openPart(database, ports, { store, room: "ground", name: "", create, id });
      const ground = new PgGround({ database, ports, signals: new Signals(), part }, { leaseMs, name });
      return new PgStore(ground, store, options, ports, await findWarnings(database));
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** Opens an event log. Throws UNSUPPORTED for `mode`, which only a folder has. */
  async events<E extends NewEvent = NewEvent>(
    log = "main",
    options: EventStoreOptions<E> = {},
  ): Promise<EventStore<E>> {
    if (options.mode !== undefined)
      throw holdfastError("UNSUPPORTED", `${this.location}: only the log of a folder has a mode.`, {
        what: "mode",
        location: this.location,
      });
    const { lockTimeoutMs, durability, create = true } = this.#options;
    const all = { lockTimeoutMs, durability, ...options };
    return await this.#parts.share(`events/${log}`, options, async () => {
      const wanted = { store: this.#store, room: "events", name: fileNameOf(log), rows: logRows } as const;
      const { create: isToBeMade = create, id } = options;
      const part = await openPart(this.ground.database, this.#ports, { ...wanted, create: isToBeMade, id });
      return new PgEvents<E>({ ground: this.ground, leases: this.#leases, part, codec: createCodec(all) }, all);
    });
  }

  /** Opens a hand-off box. */
  async handoff(box = "main", options: HandoffOptions = {}): Promise<Handoff> {
    checkHandoffOptions("handoff", options, { isInStore: true });
    const { leaseMs, durability: durabilityOfStore, create = true } = this.#options;
    return await this.#parts.share(`handoff/${box}`, options, async () => {
      const { create: isToBeMade = create, id, durability = durabilityOfStore } = options;
      const wanted = { store: this.#store, room: "handoff", name: fileNameOf(box), rows: boxRows } as const;
      const part = await openPart(this.ground.database, this.#ports, { ...wanted, create: isToBeMade, id });
      const { ground } = this;
      const { makeScratch } = this.#ports;
      const opened = new PgBox({ ground, part, store: this.#store, isSynced: durability !== "none", makeScratch });
      return new PgHandoff(opened, { leaseMs, ...options });
    });
  }

  /** Opens the object store. */
  async objects(options: ObjectStoreOptions = {}): Promise<ObjectStore> {
    checkObjectOptions("objects", options);
    const { durability, create = true } = this.#options;
    return await this.#parts.share("objects", options, async () => {
      const { create: isToBeMade = create, id } = options;
      const wanted = { store: this.#store, room: "objects", name: "", create: isToBeMade, id } as const;
      const part = await openPart(this.ground.database, this.#ports, wanted);
      return new PgObjects({ ground: this.ground, leases: this.#leases, part }, { durability, ...options });
    });
  }

  /** Opens path locks. Their keys are names in NFC, case-sensitive; there is no tree. */
  async locks(options: PgLocksOptions & ListOnly = {}): Promise<NameLocks> {
    return await this.#parts.share("locks", options, () => this.#openLocks("paths", pathKeys, options));
  }

  /** Opens the lock of the store, which admits one writer at a time. */
  async storeLock({ timeoutMs, listOnly }: Pick<StoreLockOptions, "timeoutMs"> & ListOnly = {}): Promise<StoreLock> {
    const path = `${this.location}#store-lock`;
    return tableStoreLock(await this.#openLocks("store", nameKeys, { listOnly }), path, timeoutMs);
  }

  async holders(): Promise<HolderInfo[]> {
    this.#parts.mustBeOpen();
    return await this.ground.holders();
  }

  async close(): Promise<void> {
    await this.#parts.close(async () => {
      await this.ground.close();
      await this.ground.database.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #leases(): LeaseGround {
    return {
      ground: this.ground,
      openLocks: ({ listOnly }) => this.#openLocks("leases", nameKeys, { listOnly }),
    };
  }

  /**
   * Opens the locks of one kind. Each kind has a table of its own, so that locks on paths never
   * wait for the row of the leases.
   */
  async #openLocks(
    name: string,
    keys: Keys,
    { timeoutMs, listOnly = false }: PgLocksOptions & { readonly listOnly?: boolean | undefined } = {},
  ): Promise<NameLocks> {
    const table = PgLockTable.open(this.ground, name);
    if (!listOnly) await table.sweep();
    return await TablePathLocks.on(this.location, table, { keys, timeoutMs, isOfUser: keys === pathKeys });
  }
}
