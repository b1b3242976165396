// Leases that are kept for a moment after their ticket is settled: the next ticket needs the same one, mostly.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Clock } from "../../ports/clock.ts";

/** A lease is kept for so many tickets or so long, whichever is over first: then other processes have their turn. */
const ticketsMax = 64;
const keepMs = 100;

/** Leases on names, of which each has one holder among all processes. */
export interface LeaseTaker {
  acquire(name: string, signal: AbortSignal): Promise<PathHold>;
  tryAcquire(name: string): Promise<PathHold | undefined>;
}

export interface Lease {
  readonly name: string;
  readonly hold: PathHold;
  /** In which it was taken: what is claimed under it belongs to the same session. */
  readonly session: HolderSession;
  readonly sinceMs: number;
  /** How many tickets it has served, with the present one. */
  tickets: number;
}

interface Idle {
  readonly lease: Lease;
  readonly stopAlarm: () => void;
}

export class KeptLeases {
  readonly #taker: LeaseTaker;
  readonly #clock: Clock;
  readonly #idle = new Map<string, Idle>();

  constructor(taker: LeaseTaker, clock: Clock) {
    this.#taker = taker;
    this.#clock = clock;
  }

  /** Those that are kept and not used, whose names begin so. */
  namesOf(prefix: string): string[] {
    return [...this.#idle.keys()].filter((name) => name.startsWith(prefix));
  }

  /** Undefined when another has it. */
  async tryAcquire(name: string, session: HolderSession): Promise<Lease | undefined> {
    const idle = this.#idle.get(name);
    if (idle !== undefined) {
      this.#idle.delete(name);
      idle.stopAlarm();
      const { lease } = idle;
      if (lease.session === session && !session.isOver && !lease.hold.signal.aborted) {
        lease.tickets++;
        return lease;
      }
      await release(lease);
    }
    const hold = await this.#taker.tryAcquire(name);
    return hold && this.#leaseOf(name, hold, session);
  }

  /** Waits until no other has it. */
  async acquire(name: string, session: HolderSession, signal: AbortSignal): Promise<Lease> {
    const kept = this.#idle.has(name) ? await this.tryAcquire(name, session) : undefined;
    return kept ?? this.#leaseOf(name, await this.#taker.acquire(name, signal), session);
  }

  /** When its ticket is settled. */
  async end(lease: Lease): Promise<void> {
    const leftMs = lease.sinceMs + keepMs - this.#clock.monotonicMs();
    if (lease.tickets >= ticketsMax || leftMs <= 0 || lease.session.isOver) return await release(lease);
    const stopAlarm = this.#clock.alarm(leftMs, () => {
      if (this.#idle.get(lease.name)?.lease === lease) this.#idle.delete(lease.name);
      void release(lease);
    });
    this.#idle.set(lease.name, { lease, stopAlarm });
  }

  /** Without keeping it: there is nothing to do under it. */
  async release(lease: Lease): Promise<void> {
    await release(lease);
  }

  async close(): Promise<void> {
    const kept = [...this.#idle.values()];
    this.#idle.clear();
    for (const { lease, stopAlarm } of kept) {
      stopAlarm();
      await release(lease);
    }
  }

  #leaseOf(name: string, hold: PathHold, session: HolderSession): Lease {
    return { name, hold, session, sinceMs: this.#clock.monotonicMs(), tickets: 1 };
  }
}

/** A lease that cannot be released now ends with this process. */
async function release({ hold }: Lease): Promise<void> {
  await hold.release().catch(() => undefined);
}
