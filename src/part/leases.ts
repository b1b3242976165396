// Leases: of all processes that request the same name, one holds it.
//
// A lease is a path lock on an internal name. Such names begin with a slash, and no key of a file
// does, so no user's lock covers them, not even one on the whole tree.
import type { Ground } from "../durable/liveness/ground.ts";
import type { Liveness } from "../durable/liveness/liveness.ts";
import type { Keys } from "../locks/naming/lock-key.ts";
import type { PathHold } from "../locks/path/path-hold.ts";
import type { HeldLock } from "../locks/path/path-locks.ts";
import { TablePathLocks } from "../locks/path/table-path-locks.ts";
import type { RequestTable } from "../locks/table/request-table.ts";
import { isUnwritable } from "../ports/disk-error.ts";
import { signal as publish } from "../telemetry/signals.ts";

/** Names are compared literally: there is no tree. */
export const nameKeys: Keys = {
  clean: (key: string) => key,
  locate: async (key: string) => ({ path: key, key }),
  keyOf: async (key: string) => key,
};

/** Locks on names, in any table. */
export type NameLocks = TablePathLocks<RequestTable>;

/** A ground, and how locks on names are opened in it. `listOnly`: only to list them, without writing anything. */
export interface LeaseGround {
  readonly ground: Pick<Liveness, "nameOf">;
  openLocks(options: { readonly listOnly: boolean }): Promise<NameLocks>;
}

/** Opens locks on names in the lock table of a directory. */
export function directoryLeaseGround(ground: Ground): LeaseGround {
  const openLocks: LeaseGround["openLocks"] = async ({ listOnly }) =>
    await TablePathLocks.open(ground, { keys: nameKeys, ownsGround: false, listOnly });
  return { ground, openLocks };
}

/** Returns the leases of the part in `directory`. The ground is opened at the first lease. */
export function directoryLeases(directory: string, openGround: () => Promise<Ground>): Leases {
  return new Leases(directory, async () => directoryLeaseGround(await openGround()));
}

export class Leases {
  readonly #part: string;
  readonly #openGround: () => Promise<LeaseGround>;
  #locks: Promise<NameLocks> | undefined;

  constructor(part: string, openGround: () => Promise<LeaseGround>) {
    this.#part = part;
    this.#openGround = openGround;
  }

  /**
   * Waits until no other process holds the lease, and returns it. The lease passes on when its holder dies, and its
   * fence grows with each holder.
   */
  async acquire(name: string, signal: AbortSignal): Promise<PathHold> {
    const ground = await this.#openGround();
    const locks = await this.#open(ground);
    const hold = await locks.acquire(this.#keyOf(ground, name), { timeoutMs: Infinity, signal });
    publish("holdfast:lease.taken", () => ({ location: this.#part, name, fence: hold.fence }));
    return hold;
  }

  /** Returns the lease if no other process holds it now. */
  async tryAcquire(name: string): Promise<PathHold | undefined> {
    const ground = await this.#openGround();
    const locks = await this.#open(ground);
    return await locks.tryAcquire(this.#keyOf(ground, name));
  }

  /**
   * Lists the leases at and below `under` that are held, and who waits for them. Works also where
   * nothing can be written.
   */
  async list(under: string): Promise<HeldLock[]> {
    const ground = await this.#openGround();
    const options = { under: this.#keyOf(ground, under) };
    try {
      return await (await this.#open(ground)).list(options);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await this.#look(ground, options);
    }
  }

  /** Where nothing can be written. Without a lock table, which only a lease creates, nothing was ever leased. */
  async #look(ground: LeaseGround, options: { readonly under: string }): Promise<HeldLock[]> {
    try {
      return await (await ground.openLocks({ listOnly: true })).list(options);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return [];
    }
  }

  async close(): Promise<void> {
    // Locks that could not be opened need no close.
    const locks = await this.#locks?.catch(() => undefined);
    await locks?.close();
  }

  async #open(ground: LeaseGround): Promise<NameLocks> {
    this.#locks ??= ground.openLocks({ listOnly: false });
    try {
      return await this.#locks;
    } catch (error) {
      this.#locks = undefined;
      throw error;
    }
  }

  /** Returns the key of a lease: the same under every mount, and different for each part of a store. */
  #keyOf({ ground }: LeaseGround, name: string): string {
    return `${ground.nameOf(this.#part)}/${name}`;
  }
}
