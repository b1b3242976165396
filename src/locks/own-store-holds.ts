// Which store locks this process holds itself. An OS lock does not tell who has it, and whoever waits for his own process should learn that.
import type { Waiting } from "../common.ts";
import type { Gate, GateHold } from "../durable/gate.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import type { Host } from "../ports/host.ts";

/** One for a whole process: two locks of one path know of each other. */
export class OwnStoreHolds {
  readonly #holds = new Map<string, GateHold>();

  find(path: string): GateHold | undefined {
    return this.#holds.get(path);
  }

  /** `hold`, remembered until it is released. */
  remember(path: string, hold: GateHold): GateHold {
    this.#holds.set(path, hold);
    const release = async (): Promise<void> => {
      await hold.release();
      // By now another of this process may have it.
      if (this.#holds.get(path) === hold) this.#holds.delete(path);
    };
    return {
      // Asked for by few, and made only then.
      get signal() {
        return hold.signal;
      },
      acquiredAt: hold.acquiredAt,
      release,
      isContended: () => hold.isContended(),
      [Symbol.asyncDispose]: release,
    };
  }
}

/** An OS gate whose LOCK_TIMEOUT tells who has it, if that is this process. */
export class KnownGate {
  readonly #gate: Gate;
  readonly #path: string;
  readonly #host: Host;
  readonly #holds: OwnStoreHolds;

  constructor(gate: Gate, path: string, host: Host, holds: OwnStoreHolds) {
    this.#gate = gate;
    this.#path = path;
    this.#host = host;
    this.#holds = holds;
  }

  async tryAcquire(): Promise<GateHold | undefined> {
    const hold = await this.#gate.tryAcquire();
    return hold === undefined ? undefined : this.#holds.remember(this.#path, hold);
  }

  async acquire(waiting: Waiting): Promise<GateHold> {
    try {
      return this.#holds.remember(this.#path, await this.#gate.acquire(waiting));
    } catch (error) {
      const own = this.#holds.find(this.#path);
      if (own === undefined || !isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      throw this.#heldHere(own, error.waitedMs);
    }
  }

  close(): Promise<void> {
    return this.#gate.close();
  }

  #heldHere({ acquiredAt: since }: GateHold, waitedMs: number): Error {
    const path = this.#path;
    const { name, pid, startedAtMs } = this.#host;
    const startedAt = new Date(startedAtMs);
    const holder = { id: "", host: name, pid, startedAt, lastSeenAt: since, version: "", state: "alive" } as const;
    const message = `${path} is held by this process, since ${since.toISOString()}; waited ${waitedMs} ms (option timeoutMs). Who holds it cannot take it again before it is released.`;
    const blockedBy = [{ path, mode: "exact", shared: false, holder, since }] as const;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy });
  }
}
