// The OS locks of all simulated kernels and their holders. A lock is freed when its holder dies.
import { holdfastError } from "../../errors.ts";
import type { FileNode } from "../../ports/memory/tree.ts";
import type { ServerQuirks } from "./server.ts";

/** One descriptor of one process. */
export interface LockOwner {
  readonly process: string;
  readonly machine: string;
  /** The locked file. A process that opened another file under the same name is not excluded. */
  readonly file: FileNode;
  /** The path by which it was opened, for people and for telling states apart. */
  readonly path: string;
  /** True if `path` still leads to `file`. */
  readonly isNamed: () => boolean;
}

export class SimOsLocks {
  readonly #mode: NonNullable<ServerQuirks["osLocks"]>;
  readonly #holders = new Set<LockOwner>();

  constructor(mode: ServerQuirks["osLocks"]) {
    this.#mode = mode ?? "exclude";
  }

  mustBeSupported(path: string): void {
    if (this.#mode === "none")
      throw holdfastError("UNSUPPORTED_DISK", `No OS lock can be had on ${path}.`, { path, missing: ["OS lock"] });
  }

  /** Returns false even for its holder: a lock that is held is not free. */
  isFree(owner: LockOwner): boolean {
    for (const holder of this.#holders) if (this.#excludes(holder, owner)) return false;
    return true;
  }

  take(owner: LockOwner): boolean {
    if (!this.isFree(owner)) return false;
    this.#holders.add(owner);
    return true;
  }

  isHeldBy(owner: LockOwner): boolean {
    return this.#holders.has(owner);
  }

  free(owner: LockOwner): void {
    this.#holders.delete(owner);
  }

  freeAllOf(process: string): void {
    for (const owner of this.#holders) if (owner.process === process) this.#holders.delete(owner);
  }

  describe(): string {
    return [...this.#holders]
      .map(({ path, process, isNamed }) => `${path}${isNamed() ? "" : " (gone)"}=${process}`)
      .sort()
      .join();
  }

  #excludes(holder: LockOwner, other: LockOwner): boolean {
    return holder.file === other.file && (this.#mode !== "per machine" || holder.machine === other.machine);
  }
}
