// KeyChains keeps the chains of the keys that this process is using, and of some that it used last.
import { holdfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { KeyChain } from "./key-chain.ts";
import type { KeyHead } from "./key-head.ts";
import { KeyHistory } from "./key-history.ts";
import type { KeyStorage } from "./key-storage.ts";

/** How many idle keys stay in memory, however many were used. */
const idleMax = 256;
/** How many versions of idle keys stay in memory. Versions beyond that are read again when needed. */
const idleVersionsMax = 20_000;

export interface OpenKey {
  readonly chain: KeyChain;
  readonly history: KeyHistory;
}

interface UsedKey extends OpenKey {
  users: number;
}

export class KeyChains {
  readonly #storage: KeyStorage;
  readonly #disk: Disk;
  /** Idle keys are in order of last use. */
  readonly #keys = new Map<string, UsedKey>();
  #idle = 0;
  #idleVersions = 0;

  constructor(storage: KeyStorage) {
    this.#storage = storage;
    this.#disk = storage.staging.disk;
  }

  /** Number of keys in memory. */
  get size(): number {
    return this.#keys.size;
  }

  /**
   * All callers of one key share its chain, so they queue in memory instead of competing on the
   * disk.
   */
  async use<T>(directory: string, work: (key: OpenKey) => Promise<T>): Promise<T> {
    const key = this.#take(directory);
    try {
      return await work(key);
    } finally {
      this.#give(directory, key);
    }
  }

  #take(directory: string): UsedKey {
    const known = this.#keys.get(directory);
    if (known !== undefined) {
      if (known.users++ === 0) this.#count(known, -1);
      return known;
    }
    const chain: KeyChain = new KeyChain(this.#storage, directory, () => history.doubt());
    const history = new KeyHistory(this.#disk, chain.names);
    const key = { chain, history, users: 1 };
    this.#keys.set(directory, key);
    return key;
  }

  #give(directory: string, key: UsedKey): void {
    if (--key.users > 0) return;
    this.#keys.delete(directory);
    this.#keys.set(directory, key);
    this.#count(key, 1);
    for (const [other, idle] of this.#keys) {
      if (this.#idle <= idleMax && this.#idleVersions <= idleVersionsMax) return;
      if (idle.users > 0) continue;
      this.#keys.delete(other);
      this.#count(idle, -1);
    }
  }

  #count({ history }: UsedKey, by: 1 | -1): void {
    this.#idle += by;
    this.#idleVersions += by * history.size;
  }
}

/** Throws CORRUPT if the directory holds entries of another key: it was copied or renamed. */
export function mustBeOf(name: string, { entry }: KeyHead, { chain }: OpenKey): void {
  if (entry.kind === "damaged" || entry.key === name) return;
  const path = chain.names.directory;
  const message = `${path} has entries of the key ${JSON.stringify(entry.key)}, not of ${JSON.stringify(name)}: it was copied or renamed. Move it away.`;
  throw holdfastError("CORRUPT", message, { path });
}
