// Keys for what is being appended: each subject is asked for once by all who need it at the time, and few at once, because one append may have thousands.
import type { SubjectKeys } from "../model/subject-keys.ts";
import { DirectorySubjectKeys } from "./directory-keys.ts";

const atOnceMax = 16;

export class KeyDemand {
  readonly #keys: SubjectKeys;
  readonly #asked = new Map<string, Promise<Uint8Array>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(keys: SubjectKeys) {
    this.#keys = keys;
  }

  /** The key to encrypt with: that which is there, or a new one. */
  async get(subject: string): Promise<Uint8Array> {
    const asked = this.#asked.get(subject) ?? this.#ask(subject);
    this.#asked.set(subject, asked);
    return await asked;
  }

  async #ask(subject: string): Promise<Uint8Array> {
    if (this.#running >= atOnceMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await this.#findOrCreate(subject);
    } finally {
      // Nothing is kept: what was forgotten meanwhile must not be used again.
      this.#asked.delete(subject);
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  async #findOrCreate(subject: string): Promise<Uint8Array> {
    // What `find` sees in a directory may still be gone after a power cut, and an event that was encrypted with it would not. `create` is sure of that, also of one that is there.
    if (this.#keys instanceof DirectorySubjectKeys) return await this.#keys.create(subject);
    return (await this.#keys.find(subject)) ?? (await this.#keys.create(subject));
  }
}
