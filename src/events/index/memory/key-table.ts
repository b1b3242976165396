// Numbers the keys from 0, in the order of their appearance, and finds a key by its hash.
import type { KeyHash } from "../keys/key-hash.ts";
import { Column, sortedBy } from "./column.ts";

export class KeyTable {
  readonly #highs = new Column();
  readonly #lows = new Column();
  // Each slot has the number of a key plus one; 0 means free. There are at least twice as many slots as keys.
  #slots = new Uint32Array(64);

  get length(): number {
    return this.#highs.length;
  }

  hashOf(number: number): KeyHash {
    return { high: this.#highs.at(number), low: this.#lows.at(number) };
  }

  /** Returns the numbers of all keys in the order of their hashes. */
  sorted(): Uint32Array {
    const numbers = new Uint32Array(this.length).map((_, number) => number);
    return sortedBy(sortedBy(numbers, this.#lows), this.#highs);
  }

  /** Returns -1 if no key with this hash was added. */
  find(hash: KeyHash): number {
    return (this.#slots[this.#slotOf(hash)] as number) - 1;
  }

  /** Returns the number of the key; a new one for a new key. */
  add(hash: KeyHash): number {
    const slot = this.#slotOf(hash);
    const number = (this.#slots[slot] as number) - 1;
    if (number >= 0) return number;
    this.#highs.push(hash.high);
    this.#lows.push(hash.low);
    this.#slots[slot] = this.length;
    if (this.length * 2 > this.#slots.length) this.#grow();
    return this.length - 1;
  }

  /** Returns the slot of the key, or the free slot for it. */
  #slotOf({ high, low }: KeyHash): number {
    const mask = this.#slots.length - 1;
    for (let slot = high & mask; ; slot = (slot + 1) & mask) {
      const number = (this.#slots[slot] as number) - 1;
      if (number < 0 || (this.#highs.at(number) === high && this.#lows.at(number) === low)) return slot;
    }
  }

  #grow(): void {
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let number = 0; number < this.length; number++) this.#slots[this.#slotOf(this.hashOf(number))] = number + 1;
  }
}
