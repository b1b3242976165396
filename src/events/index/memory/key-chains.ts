// Links events and keys: a linked list of events per key, newest first, and the keys of each event.
import { Column } from "./column.ts";
import type { KeyHash } from "../keys/key-hash.ts";
import { KeyTable } from "./key-table.ts";

/** Events are counted from 0. An entry is one key of one event; entry 0 means none. */
export class KeyChains {
  readonly #keys = new KeyTable();
  readonly #newest = new Column();
  readonly #counts = new Column();
  readonly #previous = new Column();
  readonly #events = new Column();
  readonly #entryKeys = new Column();
  // The first entry of each event; the entries of an event are adjacent.
  readonly #firstEntries = new Column();

  constructor() {
    this.#pushEntry(0, 0, 0);
  }

  get eventCount(): number {
    return this.#firstEntries.length;
  }

  get keyCount(): number {
    return this.#keys.length;
  }

  /** Adds an event without keys; `addKey` adds them. */
  addEvent(): void {
    this.#firstEntries.push(this.#events.length);
  }

  /** Adds a key to the last event. */
  addKey(hash: KeyHash): void {
    const event = this.eventCount - 1;
    const key = this.#keys.add(hash);
    if (key === this.#newest.length) {
      this.#newest.push(0);
      this.#counts.push(0);
    }
    const previous = this.#newest.at(key);
    // If an event names a tag twice, it is added once.
    if (previous !== 0 && this.#events.at(previous) === event) return;
    this.#newest.set(key, this.#events.length);
    this.#counts.set(key, this.#counts.at(key) + 1);
    this.#pushEntry(previous, event, key);
  }

  /** Returns the number of the key; -1 if no event has it. */
  find(hash: KeyHash): number {
    return this.#keys.find(hash);
  }

  /** Returns the numbers of all keys, in the order of their hashes. */
  sortedKeys(): Uint32Array {
    return this.#keys.sorted();
  }

  hashOf(key: number): KeyHash {
    return this.#keys.hashOf(key);
  }

  /** Returns how many events have the key. */
  countOf(key: number): number {
    return this.#counts.at(key);
  }

  newestOf(key: number): number {
    return this.#newest.at(key);
  }

  previousOf(entry: number): number {
    return this.#previous.at(entry);
  }

  eventOf(entry: number): number {
    return this.#events.at(entry);
  }

  /** Searches the keys of the event: they are few, and the chain of a key may be as long as the log. */
  has(event: number, key: number): boolean {
    const end = event + 1 < this.eventCount ? this.#firstEntries.at(event + 1) : this.#events.length;
    for (let entry = this.#firstEntries.at(event); entry < end; entry++)
      if (this.#entryKeys.at(entry) === key) return true;
    return false;
  }

  #pushEntry(previous: number, event: number, key: number): void {
    this.#previous.push(previous);
    this.#events.push(event);
    this.#entryKeys.push(key);
  }
}
