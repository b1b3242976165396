// Gets the keys that appends need. Concurrent appends for one subject share one request, and few requests run at
// once, because one append may have thousands of subjects.
import type { SubjectKeys } from "../model/event-store.ts";
import { DirectorySubjectKeys } from "./directory-keys.ts";

const atOnceMax = 16;

export class KeyDemand {
  readonly #keys: SubjectKeys;
  readonly #requests = new Map<string, Promise<Uint8Array>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(keys: SubjectKeys) {
    this.#keys = keys;
  }

  /** Returns the key to encrypt with: the existing one, or a new one. */
  async get(subject: string): Promise<Uint8Array> {
    const request = this.#requests.get(subject) ?? this.#request(subject);
    this.#requests.set(subject, request);
    return await request;
  }

  async #request(subject: string): Promise<Uint8Array> {
    if (this.#running >= atOnceMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await this.#findOrCreate(subject);
    } finally {
      // Do not cache the key: if it is forgotten meanwhile, it must not be used again.
      this.#requests.delete(subject);
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  async #findOrCreate(subject: string): Promise<Uint8Array> {
    // A key that `find` sees in a directory may not be durable: a power cut could remove the key and keep the event
    // encrypted with it. `create` also syncs an existing key.
    if (this.#keys instanceof DirectorySubjectKeys) return await this.#keys.create(subject);
    return (await this.#keys.find(subject)) ?? (await this.#keys.create(subject));
  }
}
