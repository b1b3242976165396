// The part of a hand-off that is the same in every engine: it checks the arguments of a call, refuses
// calls after the close, and delivers tickets from the engine's source.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { Lifetime } from "../durable/wait/lifetime.ts";
import { checkOptions } from "../format/known-options.ts";
import { Loop, Loops } from "../part/loop.ts";
import type { Ports } from "../ports/ports.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { consume } from "./deliver/consumer.ts";
import { DeliveryFeed } from "./deliver/feed.ts";
import type { OpenDelivery } from "./deliver/open-delivery.ts";
import type { TicketSource } from "./deliver/settler.ts";
import { tracedHandoffMethods } from "./deliver/traced-methods.ts";
import type { AdoptRule, ExportRule } from "./model/foreign-rule.ts";
import { checkPublication, type Files, type PublishOptions } from "./model/arguments.ts";
import { attemptsDefault, checkConsumeOptions, type ConsumeOptions, type Handler } from "./model/consume-options.ts";
import type { Delivery, ParkedTicket } from "./model/delivery.ts";
import type {
  AdoptOptions,
  Collected,
  ContentOptions,
  DiscardOptions,
  ExportOptions,
  Handoff,
  HandoffStats,
  ListOptions,
  ReplayOptions,
  TakeOptions,
  TicketInfo,
  TicketState,
} from "./model/handoff.ts";
import type { Publication, Published } from "./model/publication.ts";
import { checkList } from "./operate/list.ts";
import { PublishedMany } from "./publish/publish-many.ts";

export abstract class CheckedHandoff implements Handoff {
  static {
    traceMethods(this, tracedHandoffMethods);
  }

  readonly directory: string;
  protected readonly life: Lifetime;
  protected readonly loops: Loops;
  protected readonly feed: DeliveryFeed;
  readonly #source: TicketSource;

  constructor(source: TicketSource, ports: Pick<Ports, "clock" | "random">) {
    this.#source = source;
    this.directory = source.directory;
    this.life = new Lifetime(this.directory);
    this.loops = new Loops(ports.clock, this.directory);
    this.feed = new DeliveryFeed(source, ports, () => this.life.mustBeOpen());
  }

  protected abstract publishChecked(publication: Publication): Promise<Published>;
  protected abstract listChecked(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo>;
  protected abstract readContent(id: string, name: string, options: ContentOptions): AsyncGenerator<Uint8Array>;
  /** Waits until the ticket is settled. */
  protected abstract waitUntilSettled(id: string, signal: AbortSignal | undefined): Promise<TicketInfo>;
  /** Wakes all who wait for a ticket: one of them may be claimed now. */
  protected abstract wakeAll(): void;
  /** Called when nothing is in progress. */
  protected abstract leave(): Promise<void>;
  abstract adopt(directory: string, rule: AdoptRule, options?: AdoptOptions): Promise<number>;
  abstract keepAdopting(
    directory: string,
    rule: AdoptRule,
    options?: AdoptOptions & { everyMs?: number | undefined },
  ): Running;
  abstract export(directory: string, rule?: ExportRule, options?: ExportOptions): Promise<number>;
  abstract keepExporting(directory: string, rule?: ExportRule, options?: ExportOptions): Running;
  abstract find(id: string): Promise<TicketInfo | undefined>;
  abstract findByKey(key: string): Promise<TicketInfo | undefined>;
  abstract stats(): Promise<HandoffStats>;
  abstract replay(options: ReplayOptions): Promise<number>;
  abstract discard(options: DiscardOptions): Promise<number>;
  abstract collect(options?: Cancel): Promise<Collected>;
  abstract verify(options?: VerifyOptions): Promise<VerifyReport>;

  async publish(files: Files, options: PublishOptions = {}): Promise<Published> {
    const publication = checkPublication(files, options);
    this.life.mustBeOpen();
    options.signal?.throwIfAborted();
    return await this.publishChecked(publication);
  }

  /**
   * Shares the syncs and yields the results in the order of the items. A ticket that fails rejects
   * only its own `next`; the following `next` continues with the ticket after it. A `for await`
   * ends there, after the tickets already started have settled.
   */
  publishMany(
    items: Iterable<{ files: Files } & PublishOptions> | AsyncIterable<{ files: Files } & PublishOptions>,
    options: Cancel = {},
  ): AsyncIterableIterator<Published> {
    checkOptions("publishMany", options, { signal: true });
    const { signal } = options;
    return new PublishedMany(items, ({ files, ...rest }) => this.publish(files, { signal, ...rest }), signal);
  }

  consume(handler: Handler, options: ConsumeOptions = {}): Running {
    checkConsumeOptions(options);
    const { signal } = options;
    return new Loop(this.loops, (signals) => consume(this.feed, handler, options, signals), { signal });
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
    this.life.mustBeOpen();
    const { signal = neverAborts } = options;
    signal.throwIfAborted();
    return (await this.feed.resume(claim, signal)).asDelivery();
  }

  list(state: TicketState, options: ListOptions = {}): AsyncGenerator<TicketInfo> {
    checkList(state, options);
    return this.#list(state, options);
  }

  async waitFor(id: string, options: Cancel = {}): Promise<TicketInfo> {
    checkOptions("waitFor", options, { signal: true });
    this.life.mustBeOpen();
    return await this.waitUntilSettled(id, options.signal);
  }

  async *content(id: string, name: string, options: ContentOptions = {}): AsyncGenerator<Uint8Array> {
    checkOptions("content", options, { signal: true, output: true });
    this.life.mustBeOpen();
    yield* this.readContent(id, name, options);
  }

  async pause(reason?: string): Promise<void> {
    this.life.mustBeOpen();
    await this.#source.pause.begin(reason);
  }

  async resume(): Promise<void> {
    this.life.mustBeOpen();
    await this.#source.pause.end();
    this.wakeAll();
  }

  /** Stops its loops, returns its claimed tickets to the queue, and leaves the box. */
  async close(): Promise<void> {
    await this.life.close(async () => {
      await this.loops.close();
      await this.feed.close();
      await this.leave();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#list(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    this.life.mustBeOpen();
    yield* this.listChecked(state, options);
  }

  async *#deliveries(options: TakeOptions): AsyncGenerator<Delivery> {
    for (;;) {
      const delivery = await this.#take(options);
      if (delivery === undefined) return;
      yield delivery.asDelivery();
    }
  }

  async #take({ waitMs = 0, onDeadLetter, signal = neverAborts }: TakeOptions): Promise<OpenDelivery | undefined> {
    this.life.mustBeOpen();
    signal.throwIfAborted();
    const delivery = await this.feed.next({ attempts: attemptsDefault, waitMs, onDeadLetter }, signal);
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
