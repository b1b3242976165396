// Leases: of all processes that ask for the same name, one has it.
//
// A lease is a path lock on a name of its own. Names begin with a slash, and no key of a file does,
// so no lock of a user reaches them, not even one on the whole tree.
import { parentOf } from "../durable/publish/directory.ts";
import type { Ground } from "../durable/liveness/ground.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import { TablePathLocks } from "../locks/path/table-path-locks.ts";

/** Names are compared as they are: there is no tree to look at. */
const nameKeys = {
  clean: (key: string) => key,
  locate: async (key: string) => ({ path: key, key }),
  keyOf: async (key: string) => key,
};

export class Leases {
  readonly #directory: string;
  readonly #openGround: () => Promise<Ground>;
  #locks: Promise<TablePathLocks> | undefined;

  /** `directory` is that of the part. The ground is opened at the first lease. */
  constructor(directory: string, openGround: () => Promise<Ground>) {
    this.#directory = directory;
    this.#openGround = openGround;
  }

  /**
   * Waits until no other process has the lease. It passes on when its holder dies, and its fence
   * grows with each holder.
   */
  async acquire(name: string, signal: AbortSignal): Promise<PathHold> {
    const ground = await this.#openGround();
    const locks = await this.#open(ground);
    return await locks.acquire(this.#keyOf(ground, name), { timeoutMs: Infinity, signal });
  }

  /** The lease if no other process has it now. */
  async tryAcquire(name: string): Promise<PathHold | undefined> {
    const ground = await this.#openGround();
    const locks = await this.#open(ground);
    return await locks.tryAcquire(this.#keyOf(ground, name));
  }

  async close(): Promise<void> {
    // Locks that could not be opened need no closing.
    const locks = await this.#locks?.catch(() => undefined);
    await locks?.close();
  }

  async #open(ground: Ground): Promise<TablePathLocks> {
    this.#locks ??= TablePathLocks.open(ground, { keys: nameKeys, ownsGround: false });
    try {
      return await this.#locks;
    } catch (error) {
      this.#locks = undefined;
      throw error;
    }
  }

  /**
   * Relative to the folder of the ground: the same under every mount, and different for each part
   * of a store.
   */
  #keyOf(ground: Ground, name: string): string {
    const base = parentOf(ground.layout.directory);
    const part = this.#directory.startsWith(`${base}/`) ? this.#directory.slice(base.length) : "";
    return `${part}/${name}`;
  }
}
