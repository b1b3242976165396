// The feed of deliveries: recovery now and then, a look whether the box is paused, and a wait for the next ticket.
import { isHoldfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import type { DeadLetter } from "../model/handoff.ts";
import type { Pause } from "../operate/pause.ts";
import { enterDue } from "../recover/due.ts";
import { reap, returnOwn } from "../recover/reap.ts";
import type { Arrivals } from "./arrivals.ts";
import type { OpenDelivery } from "./delivery.ts";
import type { DeliverySource } from "./source.ts";

/** What is told beside the deliveries. */
export interface News {
  readonly onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
  hasToldPause?: boolean;
}

export interface FeedParts {
  readonly box: Box;
  readonly leaseMs: number;
  readonly pause: Pause;
  readonly arrivals: Arrivals;
  readonly source: DeliverySource;
  /** Completes or gives back what dead processes were adopting. */
  readonly recoverAdopted: () => Promise<unknown>;
  /** CLOSED. */
  readonly mustBeOpen: () => void;
}

/** Another process may have delayed a ticket meanwhile. */
const dueAgainMs = 250;

export class DeliveryFeed {
  readonly #parts: FeedParts;
  #recoveredAtMs = -Infinity;
  #nextDueMs = 0;

  constructor(parts: FeedParts) {
    this.#parts = parts;
  }

  /** The next delivery; undefined when there was none for `waitMs`, or when `signal` aborts. */
  async next(
    attempts: number,
    waitMs: number,
    signal: AbortSignal,
    news: News = {},
  ): Promise<OpenDelivery | undefined> {
    const { box, arrivals } = this.#parts;
    const untilMs = box.ground.ports.clock.monotonicMs() + waitMs;
    return await arrivals.first(() => this.#look(attempts, signal, news), untilMs, signal);
  }

  async #look(attempts: number, signal: AbortSignal, news: News): Promise<OpenDelivery | undefined> {
    const { mustBeOpen, pause, source } = this.#parts;
    mustBeOpen();
    await this.#recoverNowAndThen();
    if (await pause.isPaused()) {
      const { onPause, hasToldPause = false } = news;
      news.hasToldPause = true;
      if (!hasToldPause) onPause?.((await pause.find())?.reason);
      return undefined;
    }
    news.hasToldPause = false;
    try {
      return await source.next(attempts, signal, news.onDeadLetter);
    } catch (error) {
      // This process slept: it goes on in a new session.
      if (isHoldfastError(error, "LOCK_LOST", "CLAIM_LOST")) return undefined;
      throw error;
    }
  }

  /** Each quarter of a lease what the dead had in hand goes back; and what is due comes. */
  async #recoverNowAndThen(): Promise<void> {
    const { box, leaseMs, recoverAdopted } = this.#parts;
    const nowMs = box.ground.ports.clock.monotonicMs();
    if (nowMs - this.#recoveredAtMs >= leaseMs / 4) {
      this.#recoveredAtMs = nowMs;
      await reap(box);
      await returnOwn(box);
      await recoverAdopted();
      this.#nextDueMs = 0;
    }
    if ((await box.nowMs()) >= this.#nextDueMs)
      this.#nextDueMs = Math.min(await enterDue(box), (await box.nowMs()) + dueAgainMs);
  }
}
