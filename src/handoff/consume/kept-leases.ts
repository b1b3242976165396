// Leases kept for a moment after their ticket is settled: the next ticket usually needs the same
// one.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { Clock } from "../../ports/clock.ts";

/**
 * A lease is kept for this many tickets or this long, whichever ends first. Then other processes
 * get their turn.
 */
const ticketsMax = 64;
const keepMs = 100;

/** Leases on names. Each has one holder among all processes. */
export interface LeaseTaker {
  acquire(name: string, signal: AbortSignal): Promise<PathHold>;
  tryAcquire(name: string): Promise<PathHold | undefined>;
}

export interface Lease {
  readonly name: string;
  readonly hold: PathHold;
  /** The session in which it was acquired: tickets claimed under it belong to the same session. */
  readonly session: HolderSession;
  readonly sinceMs: number;
  /** Number of tickets it has served, including the current one. */
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

  /** Returns the names of leases that are kept and idle, and begin with `prefix`. */
  namesOf(prefix: string): string[] {
    return [...this.#idle.keys()].filter((name) => name.startsWith(prefix));
  }

  /** Returns undefined if another holder has the lease. */
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
      await this.release(lease);
    }
    const hold = await this.#taker.tryAcquire(name);
    return hold && this.#leaseOf(name, hold, session);
  }

  /** Acquires the lease; waits while another holder has it. */
  async acquire(name: string, session: HolderSession, signal: AbortSignal): Promise<Lease> {
    const kept = this.#idle.has(name) ? await this.tryAcquire(name, session) : undefined;
    return kept ?? this.#leaseOf(name, await this.#taker.acquire(name, signal), session);
  }

  /** Call it when the ticket is settled: keeps the lease for the next ticket, or releases it. */
  async end(lease: Lease): Promise<void> {
    const leftMs = lease.sinceMs + keepMs - this.#clock.monotonicMs();
    if (lease.tickets >= ticketsMax || leftMs <= 0 || lease.session.isOver) return await this.release(lease);
    const stopAlarm = this.#clock.alarm(leftMs, () => {
      if (this.#idle.get(lease.name)?.lease === lease) this.#idle.delete(lease.name);
      void this.release(lease);
    });
    this.#idle.set(lease.name, { lease, stopAlarm });
  }

  /**
   * Releases the lease at once, because no ticket was found under it. If that fails, the lease ends
   * with this process.
   */
  async release({ hold }: Lease): Promise<void> {
    await hold.release().catch(() => undefined);
  }

  async close(): Promise<void> {
    const kept = [...this.#idle.values()];
    this.#idle.clear();
    for (const { lease, stopAlarm } of kept) {
      stopAlarm();
      await this.release(lease);
    }
  }

  #leaseOf(name: string, hold: PathHold, session: HolderSession): Lease {
    return { name, hold, session, sinceMs: this.#clock.monotonicMs(), tickets: 1 };
  }
}
