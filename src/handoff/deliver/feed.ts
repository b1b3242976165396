// The feed of deliveries: recovers, checks for a pause, claims the next ticket, and waits until
// there is one.
import { isHoldfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import { signal as publish } from "../../telemetry/signals.ts";
import type { DeadLetter } from "../model/handoff.ts";
import { OpenDelivery } from "./open-delivery.ts";
import type { ClaimRequest, Settler, TicketSource } from "./settler.ts";

/** A consumer's request. It passes the same object to every call, which identifies the consumer. */
export interface DeliveryRequest extends ClaimRequest {
  /** How long to wait for a ticket. */
  readonly waitMs: number;
  /** Called once for each pause that keeps this consumer from claiming a ticket. */
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
}

export class DeliveryFeed {
  readonly clock: Clock;
  readonly random: Random;
  readonly #source: TicketSource;
  readonly #mustBeOpen: () => void;
  readonly #open = new Set<OpenDelivery>();
  /** Requests whose `onPause` was called for the current pause. */
  readonly #paused = new WeakSet<DeliveryRequest>();

  /** `mustBeOpen` throws CLOSED once the box is closed. */
  constructor(
    source: TicketSource,
    { clock, random }: { readonly clock: Clock; readonly random: Random },
    mustBeOpen: () => void,
  ) {
    this.clock = clock;
    this.random = random;
    this.#source = source;
    this.#mustBeOpen = mustBeOpen;
  }

  /** Returns the next delivery; undefined if there was none for `waitMs`, or if `signal` aborts. */
  async next(request: DeliveryRequest, signal: AbortSignal): Promise<OpenDelivery | undefined> {
    const untilMs = this.clock.monotonicMs() + request.waitMs;
    return await this.#source.arrivals.first(() => this.#claim(request, signal), untilMs, signal);
  }

  /** Continues a parked claim. Throws CLAIM_LOST if it is no longer parked. */
  async resume(claim: string, signal: AbortSignal): Promise<OpenDelivery> {
    return this.#deliver(await this.#source.resume(claim, signal), this.#noteOf(undefined));
  }

  /**
   * Returns the tickets in progress to the queue. A ticket that cannot be moved now is returned
   * when the session is swept.
   */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#open].map((delivery) => delivery.giveBack()));
    await this.#source.close();
  }

  get directory(): string {
    return this.#source.directory;
  }

  async #claim(request: DeliveryRequest, signal: AbortSignal): Promise<OpenDelivery | undefined> {
    this.#mustBeOpen();
    await this.#source.recover();
    const { pause } = this.#source;
    if (await pause.isPaused()) {
      const isTold = this.#paused.has(request);
      this.#paused.add(request);
      if (!isTold) request.onPause?.((await pause.find())?.reason);
      return undefined;
    }
    this.#paused.delete(request);
    try {
      const { attempts } = request;
      const onDeadLetter = this.#noteOf(request.onDeadLetter);
      const settler = await this.#source.claim({ attempts, onDeadLetter }, signal);
      return settler && this.#deliver(settler, onDeadLetter);
    } catch (error) {
      // This process slept and lost its session. It continues in a new one.
      if (isHoldfastError(error, "LOCK_LOST", "CLAIM_LOST")) return undefined;
      throw error;
    }
  }

  #noteOf(onDeadLetter: ClaimRequest["onDeadLetter"]): (ticket: DeadLetter) => void {
    return (ticket) => {
      publish("holdfast:ticket.dead", () => ({ location: this.directory, ...ticket }));
      onDeadLetter?.(ticket);
    };
  }

  #deliver(settler: Settler, onDeadLetter: (ticket: DeadLetter) => void): OpenDelivery {
    const onEnded = (ended: OpenDelivery): void => void this.#open.delete(ended);
    const delivery = new OpenDelivery(settler, { directory: this.directory, onEnded, onDeadLetter });
    this.#open.add(delivery);
    return delivery;
  }
}
