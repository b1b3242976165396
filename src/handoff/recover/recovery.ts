// Recovery by every process that consumes: now and then, it returns the tickets of dead processes
// and enters those that are due.
import type { Box } from "../box/box.ts";
import { enterDue } from "./due.ts";
import { returnDeadTickets, returnOwn } from "./return-tickets.ts";

/** Check for due tickets at least this often: another process may have delayed a ticket meanwhile. */
const dueAgainMs = 250;

export class Recovery {
  readonly #box: Box;
  readonly #leaseMs: number;
  readonly #recoverAdopted: () => Promise<unknown>;
  #recoveredAtMs = -Infinity;
  #nextDueMs = 0;

  /** `recoverAdopted` completes or gives back the claims of dead adopters. */
  constructor(box: Box, leaseMs: number, recoverAdopted: () => Promise<unknown>) {
    this.#box = box;
    this.#leaseMs = leaseMs;
    this.#recoverAdopted = recoverAdopted;
  }

  /**
   * Checks for dead processes every quarter of a lease, and for due tickets when the next known one
   * is due.
   */
  async nowAndThen(): Promise<void> {
    const box = this.#box;
    const nowMs = box.ground.ports.clock.monotonicMs();
    if (nowMs - this.#recoveredAtMs >= this.#leaseMs / 4) {
      this.#recoveredAtMs = nowMs;
      await returnDeadTickets(box);
      await returnOwn(box);
      await this.#recoverAdopted();
      this.#nextDueMs = 0;
    }
    if ((await box.nowMs()) >= this.#nextDueMs)
      this.#nextDueMs = Math.min(await enterDue(box), (await box.nowMs()) + dueAgainMs);
  }
}
