// PgHandoff: an open box in a database.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../../common.ts";
import { Lifetime } from "../../durable/wait/lifetime.ts";
import { holdfastError } from "../../errors.ts";
import { checkOptions } from "../../format/known-options.ts";
import { Arrivals } from "../../handoff/deliver/arrivals.ts";
import { Deliveries } from "../../handoff/deliver/deliveries.ts";
import { DeliveryFeed } from "../../handoff/deliver/feed.ts";
import { tracedHandoffMethods } from "../../handoff/deliver/traced-methods.ts";
import { checkPublication, type Files, type PublishOptions } from "../../handoff/model/arguments.ts";
import type { ConsumeOptions, Handler } from "../../handoff/model/consume-options.ts";
import type { Delivery, ParkedTicket } from "../../handoff/model/delivery.ts";
import type {
  Collected,
  ContentOptions,
  DiscardOptions,
  Handoff,
  HandoffOptions,
  HandoffStats,
  ListOptions,
  ReplayOptions,
  TakeOptions,
  TicketInfo,
  TicketState,
} from "../../handoff/model/handoff.ts";
import type { Published } from "../../handoff/model/publication.ts";
import { checkList } from "../../handoff/operate/list.ts";
import { Backlog } from "../../handoff/publish/backlog.ts";
import { PublishedMany } from "../../handoff/publish/publish-many.ts";
import { Loops } from "../../part/loop.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import { noSuchTicket, readContent } from "./content.ts";
import { countWaiting, listTickets, statsOf } from "./list.ts";
import { collect, discard, replay } from "./operate.ts";
import { PgPause } from "./pause.ts";
import type { PgBox } from "./pg-box.ts";
import { PgPublisher } from "./publisher.ts";
import { PgSource } from "./pg-source.ts";
import { describeRows, findRow, idOfKey, type TicketRow } from "./ticket-rows.ts";
import { verifyBox } from "./verify-box.ts";

/** Hints come by NOTIFY; polling finds those that are missed. */
const arrivalPollMs = { first: 50, max: 500 };
/** There is no hint for a ticket that another process settles. */
const receiptPollMs = { first: 20, max: 250 };

export class PgHandoff implements Handoff {
  static {
    traceMethods(this, tracedHandoffMethods);
  }

  readonly directory: string;
  readonly #box: PgBox;
  readonly #retention: NonNullable<HandoffOptions["retention"]>;
  readonly #life: Lifetime;
  readonly #pause: PgPause;
  readonly #loops: Loops;
  readonly #arrivals: Arrivals;
  readonly #receipts: Arrivals;
  readonly #publisher: PgPublisher;
  readonly #backlog: Backlog;
  readonly #feed: DeliveryFeed;
  readonly #deliveries: Deliveries;

  constructor(box: PgBox, { leaseMs = 30_000, limits = {}, retention = {} }: HandoffOptions = {}) {
    const { ports, signals } = box.ground;
    const mustBeOpen = (): void => this.#life.mustBeOpen();
    this.directory = box.directory;
    this.#life = new Lifetime(this.directory);
    this.#box = box;
    this.#retention = { ...retention };
    this.#pause = new PgPause(box);
    this.#loops = new Loops(ports.clock, this.directory);
    const hints = (path: string) => async (wake: () => void) => signals.start(path, wake);
    this.#arrivals = new Arrivals(ports, { pollMs: arrivalPollMs, watch: hints(box.part.path) });
    this.#receipts = new Arrivals(ports, { pollMs: receiptPollMs, watch: hints(box.settledPath) });
    this.#publisher = new PgPublisher(box);
    const { clock } = ports;
    const count = (ids: ReadonlySet<string>): ReturnType<typeof countWaiting> => countWaiting(box, ids);
    this.#backlog = new Backlog({ clock, path: this.directory, count }, limits);
    const { inFlight } = limits;
    const source = new PgSource(box, { arrivals: this.#arrivals, pause: this.#pause, leaseMs, inFlight });
    this.#feed = new DeliveryFeed(source, ports, mustBeOpen);
    this.#deliveries = new Deliveries(this.#feed, this.#loops, mustBeOpen);
  }

  async publish(files: Files, options: PublishOptions = {}): Promise<Published> {
    const publication = checkPublication(files, options);
    this.#life.mustBeOpen();
    options.signal?.throwIfAborted();
    return await this.#backlog.during((admit) => this.#publisher.publish({ ...publication, admit }));
  }

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

  /** Throws UNSUPPORTED: a foreign folder and a box in a database share no disk. */
  async adopt(): Promise<number> {
    throw this.#unsupported("adopt");
  }

  /** Throws UNSUPPORTED. */
  keepAdopting(): Running {
    throw this.#unsupported("keepAdopting");
  }

  /** Throws UNSUPPORTED. */
  async export(): Promise<number> {
    throw this.#unsupported("export");
  }

  /** Throws UNSUPPORTED. */
  keepExporting(): Running {
    throw this.#unsupported("keepExporting");
  }

  async find(id: string): Promise<TicketInfo | undefined> {
    this.#life.mustBeOpen();
    return await this.#describe(await findRow(this.#box, id));
  }

  async findByKey(key: string): Promise<TicketInfo | undefined> {
    this.#life.mustBeOpen();
    return await this.find(await idOfKey(this.#box, key));
  }

  list(state: TicketState, options: ListOptions = {}): AsyncGenerator<TicketInfo> {
    checkList(state, options);
    return this.#list(state, options);
  }

  async waitFor(id: string, options: Cancel = {}): Promise<TicketInfo> {
    checkOptions("waitFor", options, { signal: true });
    this.#life.mustBeOpen();
    const { signal } = options;
    const stop = signal === undefined ? this.#life.closed : AbortSignal.any([signal, this.#life.closed]);
    const find = async (): Promise<TicketRow | undefined> => {
      const row = await findRow(this.#box, id);
      if (row === undefined) throw noSuchTicket(this.directory, id);
      return row.state === "a" || row.state === "e" ? row : undefined;
    };
    const info = await this.#describe(await this.#receipts.first(find, Infinity, stop));
    stop.throwIfAborted();
    if (info === undefined) throw noSuchTicket(this.directory, id);
    return info;
  }

  async *content(id: string, name: string, options: ContentOptions = {}): AsyncGenerator<Uint8Array> {
    checkOptions("content", options, { signal: true, output: true });
    this.#life.mustBeOpen();
    yield* readContent(this.#box, id, name, options);
  }

  async stats(): Promise<HandoffStats> {
    this.#life.mustBeOpen();
    return await statsOf(this.#box);
  }

  async replay(options: ReplayOptions): Promise<number> {
    this.#life.mustBeOpen();
    return await replay(this.#box, options);
  }

  async discard(options: DiscardOptions): Promise<number> {
    this.#life.mustBeOpen();
    return await discard(this.#box, options);
  }

  async pause(reason?: string): Promise<void> {
    this.#life.mustBeOpen();
    await this.#pause.begin(reason);
  }

  async resume(): Promise<void> {
    this.#life.mustBeOpen();
    await this.#pause.end();
    this.#box.wake();
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    this.#life.mustBeOpen();
    return await collect(this.#box, this.#retention, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    this.#life.mustBeOpen();
    return await verifyBox(this.#box, options);
  }

  /** Stops its loops, returns its claimed tickets to the queue, and leaves the box. */
  async close(): Promise<void> {
    await this.#life.close(() => this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.#loops.close();
    await this.#feed.close();
    await this.#publisher.close();
  }

  async *#list(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    this.#life.mustBeOpen();
    yield* listTickets(this.#box, state, options);
  }

  async #describe(row: TicketRow | undefined): Promise<TicketInfo | undefined> {
    return row && (await describeRows(this.#box, [row]))[0];
  }

  #unsupported(what: string): Error {
    const message = `${this.directory}: ${what} is only possible with a box in a folder.`;
    return holdfastError("UNSUPPORTED", message, { what, location: this.directory });
  }
}
