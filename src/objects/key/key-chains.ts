// KeyChains: the chains of the keys that this process works on, and of some that it worked on last.
import type { Disk } from "../../ports/disk.ts";
import { KeyChain } from "./key-chain.ts";
import { KeyHistory } from "./key-history.ts";
import type { KeyPlace } from "./key-place.ts";

/** So many keys are remembered: puts to a million keys leave no more than that in memory. */
const idleMax = 256;
/** So many versions of idle keys are remembered in all: those of a key are otherwise read again each time. */
const idleVersionsMax = 20_000;

export interface OpenKey {
  readonly chain: KeyChain;
  readonly history: KeyHistory;
}

interface UsedKey extends OpenKey {
  users: number;
}

export class KeyChains {
  readonly #place: KeyPlace;
  readonly #disk: Disk;
  /** In the order in which they were used last, as far as they are idle. */
  readonly #keys = new Map<string, UsedKey>();
  #idle = 0;
  #idleVersions = 0;

  constructor(place: KeyPlace) {
    this.#place = place;
    this.#disk = place.staging.disk;
  }

  /** How many keys are in memory. */
  get size(): number {
    return this.#keys.size;
  }

  /** All callers of one key share its chain: they queue there, instead of racing each other on the disk. */
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
    const chain: KeyChain = new KeyChain(this.#place, directory, () => history.doubt());
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
