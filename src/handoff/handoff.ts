// The open hand-off: implements the public interface and delegates each call to its room.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../common.ts";
import { Lifetime } from "../durable/wait/lifetime.ts";
import { checkOptions } from "../format/known-options.ts";
import { directoryLeases, type Leases } from "../part/leases.ts";
import { Loops } from "../part/loop.ts";
import { traceMethods } from "../telemetry/trace.ts";
import type { Box } from "./box/box.ts";
import type { OpenedBox } from "./box/open-box.ts";
import { arrivalHints } from "./consume/arrival-hints.ts";
import { BoxSource } from "./consume/box-source.ts";
import { Claimer } from "./consume/claimer.ts";
import { Arrivals } from "./deliver/arrivals.ts";
import { Deliveries } from "./deliver/deliveries.ts";
import { DeliveryFeed } from "./deliver/feed.ts";
import { tracedHandoffMethods } from "./deliver/traced-methods.ts";
import { recoverClaims } from "./foreign/adopter.ts";
import { claimsInBox, type OpenFolder } from "./foreign/folder.ts";
import { ForeignFolders } from "./foreign/folders.ts";
import type { AdoptRule, ExportRule } from "./model/foreign-rule.ts";
import { checkPublication, type Files, type PublishOptions } from "./model/arguments.ts";
import type { ConsumeOptions, Handler } from "./model/consume-options.ts";
import type { Delivery, ParkedTicket } from "./model/delivery.ts";
import type {
  AdoptOptions,
  Collected,
  ContentOptions,
  DiscardOptions,
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
import type { Published } from "./model/publication.ts";
import { collect } from "./operate/collect.ts";
import { contentOf } from "./operate/content.ts";
import { discard } from "./operate/discard.ts";
import { describeFound } from "./operate/describe.ts";
import { findTicket, findTicketByKey } from "./operate/find.ts";
import { checkList, listTickets } from "./operate/list.ts";
import { Pause } from "./operate/pause.ts";
import { waitForReceipt } from "./operate/receipt.ts";
import { replay } from "./operate/replay.ts";
import { statsOf } from "./operate/stats.ts";
import { verify } from "./operate/verify/verify.ts";
import { BoxPublisher } from "./publish/box-publisher.ts";
import { PublishedMany } from "./publish/publish-many.ts";
import { TargetBoxes } from "./publish/target-boxes.ts";
import { leaveBox } from "./recover/return-tickets.ts";
import { Recovery } from "./recover/recovery.ts";

export class BoxHandoff implements Handoff {
  static {
    traceMethods(this, tracedHandoffMethods);
  }

  readonly directory: string;
  readonly box: Box;
  readonly #ownsGround: boolean;
  readonly #retention: NonNullable<HandoffOptions["retention"]>;
  readonly #life: Lifetime;
  readonly #pause: Pause;
  readonly #leases: Leases;
  readonly #loops: Loops;
  readonly #arrivals: Arrivals;
  readonly #publisher: BoxPublisher;
  readonly #targets: TargetBoxes;
  readonly #feed: DeliveryFeed;
  readonly #deliveries: Deliveries;
  readonly #folders: ForeignFolders;

  /**
   * `openFolder` finds the disk of a foreign folder. Default: the folder is an absolute path on the
   * disk of the box.
   */
  constructor(
    { box, ownsGround }: OpenedBox,
    { leaseMs = 30_000, limits = {}, retention = {} }: HandoffOptions = {},
    openFolder: OpenFolder = async (path) => ({ path, disk: box.disk }),
  ) {
    const { ports } = box.ground;
    const mustBeOpen = (): void => this.#life.mustBeOpen();
    this.directory = box.layout.directory;
    this.#life = new Lifetime(this.directory);
    this.box = box;
    this.#ownsGround = ownsGround;
    this.#retention = { ...retention };
    this.#pause = new Pause(box);
    this.#leases = directoryLeases(this.directory, async () => box.ground);
    this.#loops = new Loops(ports.clock, this.directory);
    this.#arrivals = new Arrivals(ports, arrivalHints(box));
    this.#publisher = new BoxPublisher(box, this.#arrivals, limits);
    this.#targets = new TargetBoxes(box, leaseMs);
    const source = new BoxSource(box, {
      arrivals: this.#arrivals,
      claimer: new Claimer(box, this.#leases, limits.inFlight),
      pause: this.#pause,
      recovery: new Recovery(box, leaseMs, () => recoverClaims(this.#publisher, claimsInBox(box))),
      targets: this.#targets,
    });
    this.#feed = new DeliveryFeed(source, ports, mustBeOpen);
    this.#deliveries = new Deliveries(this.#feed, this.#loops, mustBeOpen);
    this.#folders = new ForeignFolders(this.#publisher, this.#feed, this.#loops, openFolder);
  }

  async publish(files: Files, options: PublishOptions = {}): Promise<Published> {
    const publication = checkPublication(files, options);
    this.#life.mustBeOpen();
    options.signal?.throwIfAborted();
    return await this.#publisher.publish(publication);
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

  consume(handler: Handler, options?: ConsumeOptions): Running {
    return this.#deliveries.consume(handler, options);
  }

  async take(options?: TakeOptions): Promise<Delivery | undefined> {
    return await this.#deliveries.take(options);
  }

  deliveries(options?: Omit<TakeOptions, "waitMs">): AsyncGenerator<Delivery> {
    return this.#deliveries.deliveries(options);
  }

  async takeParked(forMs: number, options?: TakeOptions): Promise<ParkedTicket | undefined> {
    return await this.#deliveries.takeParked(forMs, options);
  }

  async resumeParked(claim: string, options?: Cancel): Promise<Delivery> {
    return await this.#deliveries.resumeParked(claim, options);
  }

  async adopt(directory: string, rule: AdoptRule, options: AdoptOptions = {}): Promise<number> {
    return await this.#folders.adopt(directory, rule, options);
  }

  keepAdopting(
    directory: string,
    rule: AdoptRule,
    options: AdoptOptions & { everyMs?: number | undefined } = {},
  ): Running {
    return this.#folders.keepAdopting(directory, rule, options);
  }

  async export(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Promise<number> {
    return await this.#folders.export(directory, rule, options);
  }

  keepExporting(directory: string, rule: ExportRule = {}, options: ExportOptions = {}): Running {
    return this.#folders.keepExporting(directory, rule, options);
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    this.#life.mustBeOpen();
    return await describeFound(this.box, await findTicket(this.box, id));
  }

  async findByKey(key: string): Promise<TicketInfo | undefined> {
    this.#life.mustBeOpen();
    return await describeFound(this.box, await findTicketByKey(this.box, key));
  }

  list(state: TicketState, options: ListOptions = {}): AsyncGenerator<TicketInfo> {
    checkList(state, options);
    return this.#list(state, options);
  }

  async waitFor(id: string, options: Cancel = {}): Promise<TicketInfo> {
    checkOptions("waitFor", options, { signal: true });
    this.#life.mustBeOpen();
    return await waitForReceipt(this.box, id, { signal: options.signal, closed: this.#life.closed });
  }

  async *content(id: string, name: string, options: ContentOptions = {}): AsyncGenerator<Uint8Array> {
    checkOptions("content", options, { signal: true, output: true });
    this.#life.mustBeOpen();
    yield* contentOf(this.box, id, name, options);
  }

  async stats(): Promise<HandoffStats> {
    this.#life.mustBeOpen();
    return await statsOf(this.box, this.#pause);
  }

  async replay(options: ReplayOptions): Promise<number> {
    this.#life.mustBeOpen();
    const count = await replay(this.box, options);
    this.#arrivals.wakeAll();
    return count;
  }

  async discard(options: DiscardOptions): Promise<number> {
    this.#life.mustBeOpen();
    return await discard(this.box, options);
  }

  async pause(reason?: string): Promise<void> {
    this.#life.mustBeOpen();
    await this.#pause.begin(reason);
  }

  async resume(): Promise<void> {
    this.#life.mustBeOpen();
    await this.#pause.end();
    this.#arrivals.wakeAll();
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    this.#life.mustBeOpen();
    return await collect(this.box, this.#retention, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    this.#life.mustBeOpen();
    return await verify(this.box, options);
  }

  /** Stops its loops, returns its claimed tickets, and leaves the box. */
  async close(): Promise<void> {
    await this.#life.close(() => this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#loops.close();
    await this.#feed.close();
    await this.#leases.close();
    await leaveBox(this.box);
    await this.#targets.close();
    if (this.#ownsGround) await this.box.ground.close();
  }

  async *#list(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    this.#life.mustBeOpen();
    yield* listTickets(this.box, state, options);
  }
}
