// A store: one directory with all its parts, which share one ground, one holder and one heartbeat.
import type { HolderInfo, NameRule, NewEvent, OpenOptions } from "./common.ts";
import { findCapabilities, type Capabilities } from "./doctor/capabilities.ts";
import { Ground } from "./durable/liveness/ground.ts";
import { ensureDirectory, isThere } from "./durable/publish/directory.ts";
import { checkExpectedStore } from "./durable/publish/record-file.ts";
import { findLonePart } from "./durable/store/lone-part.ts";
import { decideStore, findStore, findStoreAbove, StoreLayout } from "./durable/store/store-record.ts";
import { checkTimeout } from "./durable/wait/deadline.ts";
import { holdfastError } from "./errors.ts";
import { LogEventStore } from "./events/log-store.ts";
import { createCodec } from "./events/erasure/erasure-codec.ts";
import type { EventStore, EventStoreOptions } from "./events/model/event-store.ts";
import { IndexedFiles } from "./files/indexed-files.ts";
import { checkFilesOptions } from "./files/model/arguments.ts";
import type { FilesOptions, FileTree } from "./files/model/file-tree.ts";
import { Tree } from "./files/tree/tree.ts";
import { checkOptions, type OptionNames } from "./format/known-options.ts";
import { openBox } from "./handoff/box/open-box.ts";
import { BoxHandoff } from "./handoff/handoff.ts";
import type { Handoff, HandoffOptions } from "./handoff/model/handoff.ts";
import { checkHandoffOptions } from "./handoff/model/handoff-options.ts";
import { openStorage } from "./objects/bucket/open-objects.ts";
import { checkStoreOptions as checkObjectOptions } from "./objects/model/arguments.ts";
import type { ObjectStore, ObjectStoreOptions } from "./objects/model/object-store.ts";
import { DirectoryObjects } from "./objects/objects.ts";
import { checkNameRule } from "./locks/naming/lock-names.ts";
import { followLinks } from "./locks/naming/follow-path.ts";
import { mustBeDirectory } from "./locks/naming/lock-root.ts";
import type { PathLocks, PathLocksOptions } from "./locks/path/path-locks.ts";
import { TablePathLocks } from "./locks/path/table-path-locks.ts";
import { adoptPart, isBeingAdopted, type AdoptedPart } from "./part/adoption.ts";
import { joinOrOpenReadOnly } from "./part/part.ts";
import { SharedParts } from "./part/shared-parts.ts";
import { isUnwritable } from "./ports/disk-error.ts";
import type { Disk } from "./ports/disk.ts";
import { directoryOf, isMemory, isPostgres } from "./ports/node/location.ts";
import { openLocation, openNodeFolder, openNodePorts } from "./ports/node/ports.ts";
import type { Ports } from "./ports/ports.ts";
import { readOnlyPorts } from "./ports/read-only.ts";

/** Options of `openStore`. `id` is the one in `holdfast.json`. */
export interface StoreOptions extends OpenOptions {
  /** A process that is silent for this long is dead. Default 30,000. */
  leaseMs?: number | undefined;
  /** How long a part waits for internal locks, such as the right to append. Default 5,000. Path locks have their own `timeoutMs`. */
  lockTimeoutMs?: number | undefined;
  /** "fsync" acknowledges after a sync; "none" does not sync. Default "fsync". */
  durability?: "fsync" | "none" | undefined;
  /**
   * `portable` refuses names of files that Windows refuses or changes, with INVALID_PATH; on Windows they are always
   * refused. It is recorded when locks or files are first used, and then holds for every process. Default: `portable`
   * for a new store on a share.
   */
  names?: NameRule | undefined;
  /** Shown to other processes by `locks list` and in LOCK_TIMEOUT, for example "till 3". Default: none. */
  name?: string | undefined;
  /**
   * Only reads: joins no ground, takes no lock, and writes nothing, so no other process notices it. Calls that change
   * anything throw NO_PERMISSION; a missing store throws NOT_A_STORE. Default false.
   */
  readOnly?: boolean | undefined;
}

/** Options of `adoptStore`. */
export interface AdoptOptions {
  /** Name that the log or box gets in the store. Default "main". */
  name?: string | undefined;
}

/** Options of `store.locks()`. */
export type StoreLocksOptions = Omit<PathLocksOptions, "leaseMs" | "names" | "create" | "id">;
/** Options of `store.files()`. `timeoutMs` defaults to the `lockTimeoutMs` of the store. */
export type StoreFilesOptions = Omit<FilesOptions, "locks" | "leaseMs">;
/** Options of `store.handoff()`. `durability` defaults to that of the store. */
export type StoreHandoffOptions = Omit<HandoffOptions, "leaseMs">;
/** Options of `store.events()`. `lockTimeoutMs` and `durability` default to those of the store. */
export type StoreEventsOptions<E extends NewEvent = NewEvent> = Omit<EventStoreOptions<E>, "leaseMs">;

/**
 * An open store. Parts open on first use and are shared: the same arguments return the same object. If one caller
 * closes a part, it is closed for all of them; the next call opens it again.
 */
export interface Store extends AsyncDisposable {
  /** The absolute path of the folder, "memory:", or the location in a database without its password. */
  readonly location: string;
  /** The id of the store. It never changes. */
  readonly id: string;
  /** What the file system supports. */
  readonly capabilities: Capabilities;
  /** Path locks on the paths below `files/`, whether or not they exist. */
  locks(options?: StoreLocksOptions): Promise<PathLocks>;
  /** The tree of plain files below `files/`. Throws UNSUPPORTED for a store in a database. */
  files(options?: StoreFilesOptions): Promise<FileTree>;
  /** An event log. `log` is its name; default "main". */
  events<E extends NewEvent = NewEvent>(log?: string, options?: StoreEventsOptions<E>): Promise<EventStore<E>>;
  /** A box of tickets. `box` is its name. */
  handoff(box: string, options?: StoreHandoffOptions): Promise<Handoff>;
  /** Buckets of versioned objects. */
  objects(options?: ObjectStoreOptions): Promise<ObjectStore>;
  /** Lists the processes that have this store or one of its parts open. */
  holders(): Promise<HolderInfo[]>;
  /** Finishes work in progress, releases all locks, and closes all parts. */
  close(): Promise<void>;
}

const storeOptions: OptionNames<StoreOptions> = {
  create: true,
  id: true,
  leaseMs: true,
  lockTimeoutMs: true,
  durability: true,
  names: true,
  name: true,
  readOnly: true,
};
const locksOptions: OptionNames<StoreLocksOptions> = { timeoutMs: true, interop: true };
const eventsOptions: OptionNames<StoreEventsOptions> = {
  lockTimeoutMs: true,
  durability: true,
  mode: true,
  schemas: true,
  keys: true,
  create: true,
  id: true,
};
const nameLengthMax = 200;

/** See `openStore` of "holdfast". */
export async function openStore(location: string | URL, options: StoreOptions = {}): Promise<Store> {
  checkOptions("openStore", options, storeOptions);
  if (isPostgres(location)) {
    // Loaded on demand: most programs open folders only.
    const { openStoreAt } = await import("./postgres/by-location.ts");
    return await openStoreAt(location, options);
  }
  const { ports, path: given } = await openLocation(location);
  // Resolve links, because the names of parts in the ground depend on their paths.
  const { path } = await followLinks(ports.disk, given);
  return await createStore(ports, path, options, isMemory(location) ? "memory:" : given);
}

/**
 * Opens the store in `directory`, or creates it: directories and ground first, `holdfast.json`
 * last, so that a directory with the record is complete. Any number of processes may create it at
 * once.
 */
export async function createStore(
  given: Ports,
  directory: string,
  wanted: StoreOptions & { readonly isAdopting?: boolean } = {},
  location: string = directory,
): Promise<Store> {
  checkStoreOptions(wanted);
  const { leaseMs, name, readOnly = false } = wanted;
  const ports = readOnly ? readOnlyPorts(given) : given;
  const options = readOnly ? { ...wanted, create: false } : wanted;
  const { ground: path } = new StoreLayout(directory);
  // Check before anything is written: this refuses a newer format.
  const known = await findStore(ports.disk, directory);
  checkExpectedStore({ what: "store", path: directory, found: known }, options);
  if (known === undefined) await mustBeFree(ports.disk, directory, options.isAdopting === true);
  let isWritable = true;
  const join = (): Promise<Ground> => Ground.open(ports, path, { leaseMs, name });
  const look = (): Promise<Ground> => {
    isWritable = false;
    return Ground.openUnjoined(ports, path, { leaseMs, name });
  };
  const ground = readOnly ? await look() : await joinOrOpenReadOnly({ what: "store" }, directory, join, known && look);
  try {
    const { id } = known ?? (await decideStore(ground.staging, directory, { id: ground.id }));
    const hasOsLock = !isWritable || (await ground.session()).holder.beatIdentity !== "";
    const capabilities = await findCapabilities(ports, { directory, hasOsLock, isWritable });
    return new DirectoryStore(ground, { location, directory, id, capabilities, options });
  } catch (error) {
    await ground.close();
    throw error;
  }
}

/** Throws INVALID_PATH for a directory that is a lone part: its users would not find it in a store. */
async function mustBeFree(disk: Disk, path: string, isAdopting: boolean): Promise<void> {
  await mustBeOutsideStores(disk, path);
  if (!isAdopting && (await isBeingAdopted(disk, path))) {
    const message = `The part that was in ${path} is being made a store, so no other store was made there. If that was interrupted, \`holdfast init ${path} --adopt\` completes it.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
  const lone = await findLonePart(disk, path);
  if (lone !== undefined) {
    const message = `${path} has ${lone.what} of its own (${lone.trace}), so no store was made there. \`holdfast init ${path} --adopt\` makes a store of it, with that part in its folder ${lone.room}; or choose another directory.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
  const trace = "files/.holdfast/names.json";
  if (!(await isThere(disk, `${path}/${trace}`))) return;
  const message = `${path} has path locks on its folder files (${trace}), so no store was made there. Choose another directory.`;
  throw holdfastError("INVALID_PATH", message, { path });
}

/** See `adoptStore` of "holdfast". */
export async function adoptStore(location: string | URL, options: AdoptOptions = {}): Promise<AdoptedPart> {
  checkOptions("adoptStore", options, { name: true } satisfies OptionNames<AdoptOptions>);
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  const { path } = await followLinks(ports.disk, given);
  return await adoptInto(ports, path, options);
}

/** For tests; `adoptStore` opens the ports of the directory. */
export async function adoptInto(
  ports: Ports,
  directory: string,
  { name = "main" }: AdoptOptions = {},
): Promise<AdoptedPart> {
  // Check the name before anything moves.
  new StoreLayout(directory).part("events", name);
  const makeStore = async (): Promise<void> =>
    await (await createStore(ports, directory, { isAdopting: true })).close();
  await mustBeOutsideStores(ports.disk, directory);
  return await adoptPart({ ports, directory, makeStore }, name);
}

async function mustBeOutsideStores(disk: Disk, path: string): Promise<void> {
  const around = await findStoreAbove(disk, path);
  if (around === undefined) return;
  const message = `${path} lies in the store ${around.directory}, so no store was made there. Use that one, or choose a directory outside.`;
  throw holdfastError("INVALID_PATH", message, { path });
}

interface StoreFacts {
  readonly location: string;
  readonly directory: string;
  readonly id: string;
  readonly capabilities: Capabilities;
  readonly options: StoreOptions;
}

class DirectoryStore implements Store {
  readonly location: string;
  readonly id: string;
  readonly capabilities: Capabilities;
  readonly #ground: Ground;
  readonly #layout: StoreLayout;
  readonly #options: StoreOptions;
  readonly #parts: SharedParts;

  constructor(ground: Ground, { location, directory, id, capabilities, options }: StoreFacts) {
    this.location = location;
    this.id = id;
    this.capabilities = capabilities;
    this.#ground = ground;
    this.#layout = new StoreLayout(directory);
    this.#options = { ...options };
    this.#parts = new SharedParts(location);
  }

  async locks(options: StoreLocksOptions = {}): Promise<PathLocks> {
    checkOptions("locks", options, locksOptions);
    return await this.#parts.share("locks", options, async () => await this.#openLocks(options));
  }

  async files(options: StoreFilesOptions = {}): Promise<FileTree> {
    checkFilesOptions("files", options);
    return await this.#parts.share("files", options, async () => await this.#openFiles(options));
  }

  async events<E extends NewEvent = NewEvent>(
    log: string = "main",
    options: StoreEventsOptions<E> = {},
  ): Promise<EventStore<E>> {
    checkOptions("events", options, eventsOptions);
    const path = this.#layout.part("events", log);
    return await this.#parts.share(path, options, async () => await this.#openEvents(path, options));
  }

  async handoff(box: string, options: StoreHandoffOptions = {}): Promise<Handoff> {
    checkHandoffOptions("handoff", options, { isInStore: true });
    const path = this.#layout.part("handoff", box);
    return await this.#parts.share(path, options, async () => await this.#openHandoff(path, options));
  }

  async objects(options: ObjectStoreOptions = {}): Promise<ObjectStore> {
    checkObjectOptions("objects", options);
    return await this.#parts.share("objects", options, async () => await this.#openObjects(options));
  }

  async holders(): Promise<HolderInfo[]> {
    this.#parts.mustBeOpen();
    return await this.#ground.holders();
  }

  async close(): Promise<void> {
    await this.#parts.close(() => this.#ground.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #openLocks(options: StoreLocksOptions): Promise<TablePathLocks> {
    const root = this.#layout.files;
    const { names } = this.#options;
    await mustBeDirectory(this.#ground.ports.disk, root);
    try {
      await ensureDirectory(this.#ground.ports.disk, root);
      return await TablePathLocks.open(this.#ground, { ...options, names, root });
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      // Locks can be listed even on a disk that is not writable. If that fails too, the first error explains why.
      return await TablePathLocks.open(this.#ground, { ...options, names, root, listOnly: true }).catch(() => {
        throw error;
      });
    }
  }

  async #openFiles({ timeoutMs = this.#options.lockTimeoutMs, ...given }: StoreFilesOptions): Promise<IndexedFiles> {
    const locks = await this.#openLocks({});
    try {
      const opened = { tree: await Tree.open(locks, this.#options.names), close: () => locks.close() };
      // A process that only reads does no queued work.
      const work = this.#options.readOnly === true ? false : given.work;
      return await IndexedFiles.open(opened, { ...given, work, timeoutMs, openFolder: openNodeFolder });
    } catch (error) {
      await locks.close();
      throw error;
    }
  }

  async #openEvents<E extends NewEvent>(path: string, options: StoreEventsOptions<E>): Promise<LogEventStore<E>> {
    const { ports } = this.#ground;
    const { leaseMs, lockTimeoutMs, durability } = this.#options;
    const { path: directory } = await followLinks(ports.disk, path);
    const log = new LogEventStore<E>(
      { ports, directory, codec: createCodec(options) },
      {
        ...options,
        lockTimeoutMs: options.lockTimeoutMs ?? lockTimeoutMs,
        durability: options.durability ?? durability,
        leaseMs,
        ground: this.#ground,
      },
    );
    return await log.open();
  }

  async #openHandoff(path: string, options: StoreHandoffOptions): Promise<Handoff> {
    const { ports } = this.#ground;
    const { leaseMs, durability = "fsync" } = this.#options;
    const { path: directory } = await followLinks(ports.disk, path);
    const isSynced = (options.durability ?? durability) !== "none";
    const { create, id } = options;
    const opened = await openBox(ports, directory, { create, id, leaseMs, isSynced, ground: this.#ground });
    return new BoxHandoff(opened, { ...options, leaseMs }, openNodeFolder);
  }

  async #openObjects(options: ObjectStoreOptions): Promise<ObjectStore> {
    const { ports } = this.#ground;
    const { leaseMs, durability = "fsync" } = this.#options;
    const { path } = await followLinks(ports.disk, this.#layout.objects);
    const isSynced = (options.durability ?? durability) !== "none";
    const { create, id } = options;
    const opened = await openStorage(ports, path, { create, id, leaseMs, isSynced, ground: this.#ground });
    return new DirectoryObjects(opened, options);
  }
}

function checkStoreOptions({ lockTimeoutMs, durability, names, name, readOnly }: StoreOptions): void {
  checkNameRule("openStore", names);
  if (readOnly !== undefined && typeof readOnly !== "boolean") throw new TypeError("readOnly must be true or false.");
  if (lockTimeoutMs !== undefined) checkTimeout(lockTimeoutMs);
  if (durability !== undefined && !["fsync", "none"].includes(durability))
    throw new TypeError(`durability is "fsync" or "none", not ${durability as string}.`);
  if (name === undefined) return;
  if (typeof name !== "string") throw new TypeError("name must be a string.");
  if (name.length > nameLengthMax) throw new RangeError(`name must have at most ${nameLengthMax} characters.`);
}
