// The hand-off as a program holds it: what it calls, in the order in which a call passes through.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { holdfastError } from "../errors.ts";
import { checkOptions } from "../format/known-options.ts";
import { Leases } from "../part/leases.ts";
import { Loop, Loops } from "../part/loop.ts";
import type { Box } from "./box/box.ts";
import type { OpenedBox } from "./box/open-box.ts";
import { Arrivals } from "./consume/arrivals.ts";
import {
  attemptsDefault,
  checkConsumeOptions,
  consume,
  type ConsumeOptions,
  type Handler,
} from "./consume/consumer.ts";
import type { Delivery, OpenDelivery, SendTarget } from "./consume/delivery.ts";
import { DeliveryFeed, type News } from "./consume/feed.ts";
import type { StagedOutputs } from "./consume/outputs.ts";
import type { ParkedTicket } from "./consume/parked.ts";
import { publishSent, stageSent } from "./consume/sent.ts";
import { DeliverySource } from "./consume/source.ts";
import type { OpenFolder } from "./foreign/folder.ts";
import { ForeignFolders } from "./foreign/folders.ts";
import type { AdoptRule, ExportRule } from "./foreign/rule.ts";
import { checkPublication, type Files, type PublishOptions } from "./model/arguments.ts";
import type {
  Collected,
  ContentOptions,
  ExportOptions,
  Handoff,
  HandoffOptions,
  HandoffStats,
  ListOptions,
  ReplayOptions,
  TakeOptions,
  TicketInfo,
  TicketState,
} from "./model/handoff.ts";
import { collect } from "./operate/collect.ts";
import { contentOf } from "./operate/content.ts";
import { describeFound } from "./operate/describe.ts";
import { findTicket, findTicketByKey } from "./operate/find.ts";
import { checkList, listTickets } from "./operate/list.ts";
import { Pause } from "./operate/pause.ts";
import { waitForReceipt } from "./operate/receipt.ts";
import { replay } from "./operate/replay.ts";
import { statsOf } from "./operate/stats.ts";
import { verify } from "./operate/verify/verify.ts";
import { Backlog } from "./publish/backlog.ts";
import { Neighbours } from "./publish/neighbours.ts";
import { PublishedMany } from "./publish/publish-many.ts";
import { publish, type Publication, type Published } from "./publish/publisher.ts";
import { leaveBox } from "./recover/reap.ts";

export class BoxHandoff implements Handoff {
  readonly directory: string;
  readonly #box: Box;
  readonly #ownsGround: boolean;
  readonly #retention: NonNullable<HandoffOptions["retention"]>;
  readonly #pause: Pause;
  readonly #closed = new AbortController();
  readonly #leases: Leases;
  readonly #loops: Loops;
  readonly #arrivals: Arrivals;
  readonly #source: DeliverySource;
  readonly #backlog: Backlog;
  readonly #folders: ForeignFolders;
  readonly #feed: DeliveryFeed;
  readonly #neighbours: Neighbours;
  #closing: Promise<void> | undefined;

  /** Without `openFolder`, foreign folders are absolute paths on the disk of the box. */
  constructor(
    { box, ownsGround }: OpenedBox,
    { leaseMs = 30_000, limits = {}, retention = {} }: HandoffOptions = {},
    openFolder: OpenFolder = async (path) => ({ path, disk: box.disk }),
  ) {
    this.directory = box.layout.directory;
    this.#box = box;
    this.#ownsGround = ownsGround;
    this.#retention = { ...retention };
    this.#pause = new Pause(box);
    this.#leases = new Leases(this.directory, async () => box.ground);
    this.#loops = new Loops(box.ground.ports.clock, this.directory);
    this.#arrivals = new Arrivals(box);
    this.#backlog = new Backlog(box, limits);
    this.#neighbours = new Neighbours(box, leaseMs);
    this.#source = new DeliverySource({
      box,
      leases: this.#leases,
      inFlightMax: limits.inFlight,
      rollForward: (entry) => publishSent(box, entry, this.#neighbours),
      send: (outputs, target, files, options) => this.#send(outputs, target, files, options),
    });
    this.#folders = new ForeignFolders({
      box,
      loops: this.#loops,
      openFolder,
      publish: (publication) => this.#publish(publication),
      mustHaveRoom: () => this.#backlog.mustHaveRoom(),
      feed: () => this.#feed,
      mustBeOpen: () => this.#mustBeOpen(),
    });
    this.#feed = new DeliveryFeed({
      box,
      leaseMs,
      pause: this.#pause,
      arrivals: this.#arrivals,
      source: this.#source,
      recoverAdopted: () => this.#folders.recover(),
      mustBeOpen: () => this.#mustBeOpen(),
    });
  }

  async publish(files: Files, options: PublishOptions = {}): Promise<Published> {
    const publication = checkPublication(files, options);
    this.#mustBeOpen();
    options.signal?.throwIfAborted();
    return await this.#publish(publication);
  }

  /**
   * Shares the syncs; yields in the order given. A ticket that fails fails alone: the `next` whose turn it is rejects,
   * and the next call goes on behind it. A `for await` ends there, when what was begun behind it is settled.
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
    const { clock, random } = this.#box.ground.ports;
    const news: News = { onDeadLetter: options.onDeadLetter, onPause: options.onPause };
    const next = (attempts: number, stopping: AbortSignal): Promise<OpenDelivery | undefined> =>
      this.#feed.next(attempts, options.idleMs ?? Infinity, stopping, news);
    return new Loop(this.#loops, (signals) => consume({ clock, random, next }, handler, options, signals), {
      signal: options.signal,
    });
  }

  async take(options: TakeOptions = {}): Promise<Delivery | undefined> {
    checkTakeOptions("take", options);
    return (await this.#takeOpen(options))?.asDelivery();
  }

  deliveries(options: Omit<TakeOptions, "waitMs"> = {}): AsyncGenerator<Delivery> {
    checkOptions("deliveries", options, { signal: true, onDeadLetter: true });
    return this.#deliveries({ ...options, waitMs: Infinity });
  }

  /**
   * For the command line, whose process ends: takes a ticket and parks the claim for `forMs`. Until then any
   * process can go on with it by `resumeParked`; then the ticket goes back.
   */
  async takeParked(forMs: number, options: TakeOptions = {}): Promise<ParkedTicket | undefined> {
    checkTakeOptions("takeParked", options);
    const delivery = await this.#takeOpen(options);
    try {
      return await delivery?.park(forMs);
    } finally {
      // Nothing, unless it could not be parked.
      await delivery?.giveBack();
    }
  }

  /** `claim` as `takeParked` told it, or the ticket's id. CLAIM_LOST when it is not parked any more. */
  async resumeParked(claim: string, options: Cancel = {}): Promise<Delivery> {
    checkOptions("resumeParked", options, { signal: true });
    this.#mustBeOpen();
    const { signal } = options;
    signal?.throwIfAborted();
    return (await this.#source.resume(claim, signal ?? new AbortController().signal)).asDelivery();
  }

  /** One pass over a foreign folder; how many tickets it made. */
  async adopt(directory: string, rule: AdoptRule, options: Cancel = {}): Promise<number> {
    return await this.#folders.adopt(directory, rule, options);
  }

  /** The same, until stopped. Waits while the box is full. */
  keepAdopting(directory: string, rule: AdoptRule, options: Cancel & { everyMs?: number | undefined } = {}): Running {
    return this.#folders.keepAdopting(directory, rule, options);
  }

  /** Hands what can be taken now to a plain folder: payload first, done file last. How many tickets that were. */
  async export(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Promise<number> {
    return await this.#folders.export(directory, rule, options);
  }

  /** The same, until stopped. */
  keepExporting(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Running {
    return this.#folders.keepExporting(directory, rule, options);
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    this.#mustBeOpen();
    return await describeFound(this.#box, await findTicket(this.#box, id));
  }

  async findByKey(key: string): Promise<TicketInfo | undefined> {
    this.#mustBeOpen();
    return await describeFound(this.#box, await findTicketByKey(this.#box, key));
  }

  list(state: TicketState, options: ListOptions = {}): AsyncGenerator<TicketInfo> {
    checkList(state, options);
    return this.#list(state, options);
  }

  async waitFor(id: string, options: Cancel = {}): Promise<TicketInfo> {
    checkOptions("waitFor", options, { signal: true });
    this.#mustBeOpen();
    return await waitForReceipt(this.#box, id, { signal: options.signal, closed: this.#closed.signal });
  }

  async *content(id: string, name: string, options: ContentOptions = {}): AsyncGenerator<Uint8Array> {
    checkOptions("content", options, { signal: true, output: true });
    this.#mustBeOpen();
    yield* contentOf(this.#box, id, name, options);
  }

  async stats(): Promise<HandoffStats> {
    this.#mustBeOpen();
    return await statsOf(this.#box, this.#pause);
  }

  async replay(options: ReplayOptions): Promise<number> {
    this.#mustBeOpen();
    const count = await replay(this.#box, options);
    this.#arrivals.wakeAll();
    return count;
  }

  async pause(reason?: string): Promise<void> {
    this.#mustBeOpen();
    await this.#pause.begin(reason);
  }

  async resume(): Promise<void> {
    this.#mustBeOpen();
    await this.#pause.end();
    this.#arrivals.wakeAll();
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    this.#mustBeOpen();
    return await collect(this.#box, this.#retention, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    this.#mustBeOpen();
    return await verify(this.#box, options);
  }

  /** Stops its loops, gives back what it has in hand, and leaves. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#closed.abort(this.#closedError());
    await this.#loops.close();
    await this.#source.close();
    await this.#leases.close();
    await leaveBox(this.#box);
    await this.#neighbours.close();
    if (this.#ownsGround) await this.#box.ground.close();
  }

  async *#deliveries(options: TakeOptions): AsyncGenerator<Delivery> {
    for (;;) {
      const delivery = await this.take(options);
      if (delivery === undefined) return;
      yield delivery;
    }
  }

  async #takeOpen({ waitMs = 0, onDeadLetter, ...options }: TakeOptions): Promise<OpenDelivery | undefined> {
    this.#mustBeOpen();
    const { signal = new AbortController().signal } = options;
    signal.throwIfAborted();
    const delivery = await this.#feed.next(attemptsDefault, waitMs, signal, { onDeadLetter });
    if (signal.aborted) await delivery?.giveBack();
    signal.throwIfAborted();
    return delivery;
  }

  async #publish(publication: Publication): Promise<Published> {
    const published = await this.#backlog.during((admit) => publish(this.#box, { ...publication, admit }));
    this.#arrivals.wakeAll();
    return published;
  }

  async *#list(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    this.#mustBeOpen();
    yield* listTickets(this.#box, state, options);
  }

  async #send(outputs: StagedOutputs, target: SendTarget, files: Files, options: PublishOptions): Promise<void> {
    const { directory } = target;
    const boxId = target instanceof BoxHandoff ? target.#box.id : undefined;
    await stageSent(this.#box, outputs, { directory, boxId }, this.#neighbours, files, options);
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw this.#closedError();
  }

  #closedError(): Error {
    return holdfastError("CLOSED", `${this.directory} was closed.`, {});
  }
}

function checkTakeOptions(call: string, options: TakeOptions): void {
  checkOptions(call, options, { signal: true, waitMs: true, onDeadLetter: true });
  const { waitMs = 0 } = options;
  if (!(typeof waitMs === "number" && waitMs >= 0))
    throw new RangeError(`${call}: waitMs must be a number of milliseconds from 0, not ${String(waitMs)}.`);
}
