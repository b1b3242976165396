// A store: one directory with all parts in it, and one ground, one holder and one heartbeat for all
// of them.
import type { HolderInfo, NewEvent, OpenOptions } from "./common.ts";
import { findCapabilities, type Capabilities } from "./doctor/capabilities.ts";
import { Ground } from "./durable/liveness/ground.ts";
import { ensureDirectory } from "./durable/publish/directory.ts";
import { checkExpectedStore } from "./durable/publish/record-file.ts";
import { decideStore, findStore, findStoreAbove, isThere, StoreLayout } from "./durable/store/store-record.ts";
import { checkTimeout } from "./durable/wait/deadline.ts";
import { holdfastError } from "./errors.ts";
import { LogEventStore } from "./events/log-store.ts";
import { createCodec } from "./events/erasure/erasure-codec.ts";
import type { EventStore, EventStoreOptions } from "./events/model/event-store.ts";
import { IndexedFiles } from "./files/indexed-files.ts";
import { checkFilesOptions } from "./files/model/arguments.ts";
import type { FilesOptions, FileTree } from "./files/model/file-tree.ts";
import { TreePlace } from "./files/tree/tree-place.ts";
import { checkOptions, type OptionNames } from "./format/known-options.ts";
import { openBox } from "./handoff/box/open-box.ts";
import { BoxHandoff } from "./handoff/handoff.ts";
import type { Handoff, HandoffOptions } from "./handoff/model/handoff.ts";
import { checkHandoffOptions } from "./handoff/model/handoff-options.ts";
import { openPlace } from "./objects/bucket/open-objects.ts";
import { checkStoreOptions as checkObjectOptions } from "./objects/model/arguments.ts";
import type { ObjectStoreOptions } from "./objects/model/object-store.ts";
import { DirectoryObjects } from "./objects/objects.ts";
import { followLinks } from "./locks/naming/follow-path.ts";
import { mustBeDirectory } from "./locks/naming/lock-root.ts";
import type { PathLocks, PathLocksOptions } from "./locks/path/path-locks.ts";
import { TablePathLocks } from "./locks/path/table-path-locks.ts";
import { joinOrLook } from "./part/part.ts";
import { SharedParts } from "./part/shared-parts.ts";
import { isUnwritable } from "./ports/disk-error.ts";
import type { Disk } from "./ports/disk.ts";
import { createMemoryHost } from "./ports/memory/host.ts";
import { createMemoryPorts } from "./ports/memory/ports.ts";
import { directoryOf } from "./ports/node/location.ts";
import { nodeMemoryBase, openNodeFolder, openNodePorts } from "./ports/node/ports.ts";
import type { Ports } from "./ports/ports.ts";

/** `id` is that of `holdfast.json`. */
export interface StoreOptions extends OpenOptions {
  /** One lease for this process in this store. Default 30_000. */
  leaseMs?: number | undefined;
  /** For every lock that a part waits for, such as the turn to write. Default 5_000. Path locks have a `timeoutMs` of their own. */
  lockTimeoutMs?: number | undefined;
  /** Default "fsync". */
  durability?: "fsync" | "none" | undefined;
  /** Shown to others in `locks list` and in LOCK_TIMEOUT: "till 3". */
  name?: string | undefined;
}

export type StoreLocksOptions = Omit<PathLocksOptions, "leaseMs" | "create" | "id">;
export type StoreFilesOptions = Omit<FilesOptions, "locks" | "leaseMs">;
export type StoreHandoffOptions = Omit<HandoffOptions, "leaseMs">;
export type StoreEventsOptions<E extends NewEvent = NewEvent> = Omit<EventStoreOptions<E>, "leaseMs">;

/**
 * Parts open on first use and are shared: the same arguments give the same object. `close()` drains
 * and closes them all. A part that a caller closes is closed for all who share it; the next call
 * opens it anew.
 */
export interface Store extends AsyncDisposable {
  readonly location: string;
  readonly id: string;
  readonly capabilities: Capabilities;
  /** On the paths below `files/`, whether anything is there or not. */
  locks(options?: StoreLocksOptions): Promise<PathLocks>;
  /** The tree of plain files below `files/`. */
  files(options?: StoreFilesOptions): Promise<FileTree>;
  /** Default "main". */
  events<E extends NewEvent = NewEvent>(log?: string, options?: StoreEventsOptions<E>): Promise<EventStore<E>>;
  handoff(box: string, options?: StoreHandoffOptions): Promise<Handoff>;
  /** Buckets of versioned objects. */
  objects(options?: ObjectStoreOptions): Promise<DirectoryObjects>;
  /** The processes that have this store open, or one of its parts. */
  holders(): Promise<HolderInfo[]>;
  close(): Promise<void>;
}

const storeOptions: OptionNames<StoreOptions> = {
  create: true,
  id: true,
  leaseMs: true,
  lockTimeoutMs: true,
  durability: true,
  name: true,
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

/** As `openStore` of "holdfast" says. */
export async function openStore(location: string | URL, options: StoreOptions = {}): Promise<Store> {
  checkOptions("openStore", options, storeOptions);
  if (location === "memory:") return await createStore(memoryPorts(), "/store", options, location);
  const given = directoryOf(location);
  const ports = await openNodePorts(given);
  // Followed: the names of parts in the ground depend on their paths.
  const { path } = await followLinks(ports.disk, given);
  return await createStore(ports, path, options, given);
}

function memoryPorts(): Ports {
  const { clock, random, warn } = nodeMemoryBase;
  return createMemoryPorts({ clock, random, host: createMemoryHost({ clock, random }, warn) });
}

/**
 * The store in `directory`, made if it is not there: directories and ground first, `holdfast.json`
 * last, so that a directory that has the record has all of it. Any number of processes may make it
 * at once.
 */
export async function createStore(
  ports: Ports,
  directory: string,
  options: StoreOptions = {},
  location: string = directory,
): Promise<Store> {
  checkStoreOptions(options);
  const { leaseMs, name } = options;
  const { ground: path } = new StoreLayout(directory);
  // Before anything is written: a newer format is refused here.
  const known = await findStore(ports.disk, directory);
  checkExpectedStore({ what: "store", path: directory, found: known }, options);
  if (known === undefined) await mustBeFree(ports.disk, directory);
  let isWritable = true;
  const join = (): Promise<Ground> => Ground.open(ports, path, { leaseMs, name });
  const look = (): Promise<Ground> => {
    isWritable = false;
    return Ground.openUnjoined(ports, path, { leaseMs, name });
  };
  const ground = await joinOrLook({ what: "store" }, directory, join, known && look);
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

/**
 * INVALID_PATH for a directory that is a part of its own: its users would not find it in a store.
 */
async function mustBeFree(disk: Disk, path: string): Promise<void> {
  const around = await findStoreAbove(disk, path);
  if (around !== undefined) {
    const message = `${path} lies in the store ${around.directory}, so no store was made there. Use that one, or choose a directory outside.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
  for (const [trace, what] of [
    ["log.json", "an event log"],
    ["box.json", "a hand-off box"],
    ["objects.json", "an object store"],
    [".holdfast/names.json", "path locks"],
    ["files/.holdfast/names.json", "path locks on its folder files"],
  ] as const) {
    if (!(await isThere(disk, `${path}/${trace}`))) continue;
    const message = `${path} has ${what} of its own (${trace}), so no store was made there. Choose another directory.`;
    throw holdfastError("INVALID_PATH", message, { path });
  }
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

  async objects(options: ObjectStoreOptions = {}): Promise<DirectoryObjects> {
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
    await mustBeDirectory(this.#ground.ports.disk, root);
    try {
      await ensureDirectory(this.#ground.ports.disk, root);
      return await TablePathLocks.open(this.#ground, { ...options, root });
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      // Who holds what can be listed also where nothing can be written. Whatever else fails, this
      // one says why.
      return await TablePathLocks.open(this.#ground, { ...options, root, toLook: true }).catch(() => {
        throw error;
      });
    }
  }

  async #openFiles({ timeoutMs = this.#options.lockTimeoutMs, ...given }: StoreFilesOptions): Promise<IndexedFiles> {
    const locks = await this.#openLocks({});
    try {
      const options = { root: locks.root, ground: this.#ground, locks: async () => locks };
      const opened = { place: await TreePlace.open(options), close: () => locks.close() };
      return await IndexedFiles.open(opened, { ...given, timeoutMs, openFolder: openNodeFolder });
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

  async #openHandoff(path: string, options: StoreHandoffOptions): Promise<BoxHandoff> {
    const { ports } = this.#ground;
    const { leaseMs, durability = "fsync" } = this.#options;
    const { path: directory } = await followLinks(ports.disk, path);
    const isSynced = (options.durability ?? durability) !== "none";
    const { create, id } = options;
    const opened = await openBox(ports, directory, { create, id, leaseMs, isSynced, ground: this.#ground });
    return new BoxHandoff(opened, { ...options, leaseMs }, openNodeFolder);
  }

  async #openObjects(options: ObjectStoreOptions): Promise<DirectoryObjects> {
    const { ports } = this.#ground;
    const { leaseMs, durability = "fsync" } = this.#options;
    const { path } = await followLinks(ports.disk, this.#layout.objects);
    const isSynced = (options.durability ?? durability) !== "none";
    const { create, id } = options;
    const opened = await openPlace(ports, path, { create, id, leaseMs, isSynced, ground: this.#ground });
    return new DirectoryObjects(opened, options);
  }
}

function checkStoreOptions({ lockTimeoutMs, durability, name }: StoreOptions): void {
  if (lockTimeoutMs !== undefined) checkTimeout(lockTimeoutMs);
  if (durability !== undefined && !["fsync", "none"].includes(durability))
    throw new TypeError(`durability is "fsync" or "none", not ${durability as string}.`);
  if (name === undefined) return;
  if (typeof name !== "string") throw new TypeError("name must be a string.");
  if (name.length > nameLengthMax) throw new RangeError(`name must have at most ${nameLengthMax} characters.`);
}
