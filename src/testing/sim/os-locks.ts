// The OS locks of all simulated kernels: who holds which, freed when the holder dies.
import { holdfastError } from "../../errors.ts";
import type { Quirks } from "./server.ts";

/** One descriptor of one process. */
export interface LockOwner {
  readonly process: string;
}

export class SimOsLocks {
  readonly #mode: NonNullable<Quirks["osLocks"]>;
  readonly #holders = new Map<string, LockOwner>();

  constructor(mode: Quirks["osLocks"]) {
    this.#mode = mode ?? "exclude";
  }

  mustBeSupported(path: string): void {
    if (this.#mode === "none")
      throw holdfastError("UNSUPPORTED_DISK", `No OS lock can be had on ${path}.`, { path, missing: ["OS lock"] });
  }

  newOwner(process: string): LockOwner {
    return { process };
  }

  /** Locks of one file that exclude only within a machine are, in effect, one lock per machine. */
  keyOf(path: string, machine: string): string {
    return this.#mode === "per machine" ? `${path}@${machine}` : path;
  }

  isFree(key: string, owner: LockOwner): boolean {
    const holder = this.#holders.get(key);
    return holder === undefined || holder === owner;
  }

  take(key: string, owner: LockOwner): boolean {
    if (!this.isFree(key, owner)) return false;
    this.#holders.set(key, owner);
    return true;
  }

  free(key: string, owner: LockOwner): void {
    if (this.#holders.get(key) === owner) this.#holders.delete(key);
  }

  freeAllOf(process: string): void {
    for (const [key, owner] of this.#holders) if (owner.process === process) this.#holders.delete(key);
  }

  describe(): string {
    return [...this.#holders]
      .map(([key, owner]) => `${key}=${owner.process}`)
      .sort()
      .join();
  }
}
