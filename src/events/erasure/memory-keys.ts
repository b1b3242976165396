// Subject keys in memory, for tests.
import type { Random } from "../../ports/random.ts";
import type { SubjectKeys } from "../model/event-store.ts";
import { forgottenSubject, checkSubject } from "./personal.ts";

export class MemorySubjectKeys implements SubjectKeys {
  readonly #random: Random;
  readonly #keys = new Map<string, Uint8Array | "forgotten">();

  constructor(random: Random) {
    this.#random = random;
  }

  async find(subject: string): Promise<Uint8Array | undefined> {
    const key = this.#keys.get(subject);
    return key === "forgotten" ? undefined : key;
  }

  async create(subject: string): Promise<Uint8Array> {
    checkSubject(subject);
    const key = this.#keys.get(subject) ?? this.#random.bytes(32);
    if (key === "forgotten") throw forgottenSubject(subject);
    this.#keys.set(subject, key);
    return key;
  }

  async forget(subject: string): Promise<void> {
    checkSubject(subject);
    this.#keys.set(subject, "forgotten");
  }
}
