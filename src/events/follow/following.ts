// What follows a log in this process: the locks that decide who of all processes may, the loops, and who wants to hear of progress. It ends with the log.
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { TablePathLocks } from "../../locks/path/service.ts";
import type { LogAccess } from "../log/log-access.ts";

export interface Stoppable {
  stop(): Promise<void>;
}

export class Following {
  readonly loops: Set<Stoppable> = new Set();
  /** Called when a checkpoint was made here, or will not be: those who wait for it need not wait for their next look. */
  readonly waiting: Set<() => void> = new Set();
  readonly #access: LogAccess;
  #locks: Promise<TablePathLocks> | undefined;
  #isClosed = false;

  constructor(access: LogAccess) {
    this.#access = access;
  }

  /**
   * Waits until nobody else has the lease `name`. It is a path lock in the log's ground, so it passes on when its holder dies, and its fence grows with each who gets
   * it.
   */
  async lease(name: string, signal: AbortSignal): Promise<PathHold> {
    const locks = await this.#openLocks();
    return await locks.acquire(this.#keyOf(name), { timeoutMs: Infinity, signal });
  }

  progressed(): void {
    for (const wake of [...this.waiting]) wake();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // Those who wait are told.
    this.progressed();
    await Promise.all([...this.loops].map((loop) => loop.stop()));
    // Where they could not be opened there is nothing to close.
    const locks = await this.#locks?.catch(() => undefined);
    await locks?.close();
  }

  /** CLOSED. */
  mustBeOpen(): void {
    if (this.#isClosed) throw holdfastError("CLOSED", `${this.#access.directory} was closed.`, {});
  }

  async #openLocks(): Promise<TablePathLocks> {
    await this.#access.opened();
    const { ground } = this.#access;
    // Names of work, not paths: nothing of a tree is looked at.
    const keys = {
      clean: (key: string) => key,
      locate: async (key: string) => ({ path: key, key }),
      keyOf: async (key: string) => key,
    };
    this.#locks ??= TablePathLocks.open(ground, { keys, ownsGround: false });
    try {
      return await this.#locks;
    } catch (error) {
      this.#locks = undefined;
      throw error;
    }
  }

  /**
   * The same on every machine, whatever the mount is called there, and different for each log of a store that shares one ground. It begins with a slash, so that it is
   * the key of no file, and no lock on paths reaches it, be it on the whole tree.
   */
  #keyOf(name: string): string {
    const { ground, directory } = this.#access;
    const base = parentOf(ground.layout.directory);
    return directory.startsWith(`${base}/`) ? `${directory.slice(base.length)}/${name}` : `/${name}`;
  }
}

const all = new WeakMap<LogAccess, Following>();

/** One for each opened log. */
export function followingOf(access: LogAccess): Following {
  const following = all.get(access) ?? new Following(access);
  all.set(access, following);
  return following;
}

/** Called by the store when it is closed, before anything else of it ends: loops drain what they have in hand. */
export async function endFollowing(access: LogAccess): Promise<void> {
  await followingOf(access).close();
}
