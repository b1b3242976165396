// The methods of a hand-off that deliver tickets: checks their arguments, and takes from the feed.
import type { Cancel, Running } from "../../common.ts";
import { checkOptions } from "../../format/known-options.ts";
import { Loop, type Loops } from "../../part/loop.ts";
import { attemptsDefault, checkConsumeOptions, type ConsumeOptions, type Handler } from "../model/consume-options.ts";
import type { Delivery, ParkedTicket } from "../model/delivery.ts";
import type { TakeOptions } from "../model/handoff.ts";
import { consume } from "./consumer.ts";
import type { DeliveryFeed } from "./feed.ts";
import type { OpenDelivery } from "./open-delivery.ts";

export class Deliveries {
  readonly #feed: DeliveryFeed;
  readonly #loops: Loops;
  readonly #mustBeOpen: () => void;

  /** `mustBeOpen` throws CLOSED once the box is closed. */
  constructor(feed: DeliveryFeed, loops: Loops, mustBeOpen: () => void) {
    this.#feed = feed;
    this.#loops = loops;
    this.#mustBeOpen = mustBeOpen;
  }

  consume(handler: Handler, options: ConsumeOptions = {}): Running {
    checkConsumeOptions(options);
    const { signal } = options;
    return new Loop(this.#loops, (signals) => consume(this.#feed, handler, options, signals), { signal });
  }

  async take(options: TakeOptions = {}): Promise<Delivery | undefined> {
    checkTakeOptions("take", options);
    return (await this.#take(options))?.asDelivery();
  }

  deliveries(options: Omit<TakeOptions, "waitMs"> = {}): AsyncGenerator<Delivery> {
    checkOptions("deliveries", options, { signal: true, onDeadLetter: true });
    return this.#deliveries({ ...options, waitMs: Infinity });
  }

  async takeParked(forMs: number, options: TakeOptions = {}): Promise<ParkedTicket | undefined> {
    checkTakeOptions("takeParked", options);
    const delivery = await this.#take(options);
    try {
      return await delivery?.park(forMs);
    } finally {
      // Does nothing if the claim was parked.
      await delivery?.giveBack();
    }
  }

  async resumeParked(claim: string, options: Cancel = {}): Promise<Delivery> {
    checkOptions("resumeParked", options, { signal: true });
    this.#mustBeOpen();
    const { signal = neverAborts } = options;
    signal.throwIfAborted();
    return (await this.#feed.resume(claim, signal)).asDelivery();
  }

  async *#deliveries(options: TakeOptions): AsyncGenerator<Delivery> {
    for (;;) {
      const delivery = await this.#take(options);
      if (delivery === undefined) return;
      yield delivery.asDelivery();
    }
  }

  async #take({ waitMs = 0, onDeadLetter, signal = neverAborts }: TakeOptions): Promise<OpenDelivery | undefined> {
    this.#mustBeOpen();
    signal.throwIfAborted();
    const delivery = await this.#feed.next({ attempts: attemptsDefault, waitMs, onDeadLetter }, signal);
    if (signal.aborted) await delivery?.giveBack();
    signal.throwIfAborted();
    return delivery;
  }
}

/** The signal of calls that pass none. */
const neverAborts = new AbortController().signal;

function checkTakeOptions(call: string, options: TakeOptions): void {
  checkOptions(call, options, { signal: true, waitMs: true, onDeadLetter: true });
  const { waitMs = 0 } = options;
  if (!(typeof waitMs === "number" && waitMs >= 0))
    throw new RangeError(`${call}: waitMs must be a number of milliseconds from 0, not ${String(waitMs)}.`);
}
