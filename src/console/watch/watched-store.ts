// WatchedStore: the store as a console reads it. It is opened with `readOnly`, so that a forgotten
// console joins no ground, takes no lock and writes nothing.
import { listEventLogs, type EventStore } from "../../events/index.ts";
import { listTrees, type FileTree } from "../../files/index.ts";
import { findNameOf } from "../../format/name.ts";
import { listHandoffs, type Handoff } from "../../handoff/index.ts";
import { openStore, type HolderInfo, type Store } from "../../index.ts";
import { findLockRoot, type HeldLock } from "../../locks/index.ts";
import { listObjectStores, type Bucket, type ObjectStore } from "../../objects/index.ts";
import { RequestError } from "../http/request-error.ts";

export class WatchedStore {
  readonly location: string;
  readonly id: string;
  #store: Promise<Store> | undefined;
  #isClosed = false;

  constructor({ location, id }: Pick<Store, "location" | "id">) {
    this.location = location;
    this.id = id;
  }

  /**
   * Opens the store on the first call, and again after a failure, because a share may come back.
   */
  async store(): Promise<Store> {
    if (this.#isClosed) throw new RequestError(503, "CLOSED", "The console was closed.");
    this.#store ??= openStore(this.location, { readOnly: true, id: this.id });
    try {
      return await this.#store;
    } catch (error) {
      this.#store = undefined;
      throw error;
    }
  }

  async holders(): Promise<HolderInfo[]> {
    return await (await this.store()).holders();
  }

  /** Lists the locks of users, without those that Holdfast takes for its own work. */
  async locks(): Promise<HeldLock[]> {
    // Opening the locks would create a table.
    if ((await findLockRoot(this.location))?.hasLocks !== true) return [];
    const locks = await (await (await this.store()).locks()).list();
    return locks.filter(({ path }) => !path.startsWith("/"));
  }

  async logs(): Promise<string[]> {
    return namesOf(await listEventLogs(this.location));
  }

  async log(name: string): Promise<EventStore> {
    return await (await this.store()).events(name, { create: false });
  }

  async boxes(): Promise<string[]> {
    return namesOf(await listHandoffs(this.location));
  }

  async box(name: string): Promise<Handoff> {
    return await (await this.store()).handoff(name, { create: false });
  }

  /** Undefined if the store has never had objects. */
  async findObjects(): Promise<ObjectStore | undefined> {
    if ((await listObjectStores(this.location)).length === 0) return undefined;
    return await (await this.store()).objects({ create: false });
  }

  async bucket(name: string): Promise<Bucket> {
    const bucket = await (await this.findObjects())?.findBucket(name);
    if (bucket === undefined) throw new RequestError(404, "NO_SUCH_BUCKET", "There is no bucket of this name.");
    return bucket;
  }

  /** Undefined if the store has never had files. */
  async findTree(): Promise<FileTree | undefined> {
    if ((await listTrees(this.location)).length === 0) return undefined;
    return await (await this.store()).files();
  }

  async tree(): Promise<FileTree> {
    const tree = await this.findTree();
    if (tree === undefined) throw new RequestError(404, "NO_SUCH_FILE", "This store has no files yet.");
    return tree;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const store = await this.#store?.catch(() => undefined);
    await store?.close();
  }
}

function namesOf(directories: readonly string[]): string[] {
  return directories.flatMap((path) => findNameOf(path.slice(path.lastIndexOf("/") + 1)) ?? []).sort();
}
