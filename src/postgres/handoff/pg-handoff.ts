// PgHandoff: an open box in a database.
import type { Cancel, Running, VerifyOptions, VerifyReport } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { Arrivals } from "../../handoff/deliver/arrivals.ts";
import { tracedHandoffMethods } from "../../handoff/deliver/traced-methods.ts";
import type {
  Collected,
  ContentOptions,
  DiscardOptions,
  HandoffOptions,
  HandoffStats,
  ListOptions,
  ReplayOptions,
  TicketInfo,
  TicketState,
} from "../../handoff/model/handoff.ts";
import type { Published, Publication } from "../../handoff/model/publication.ts";
import { Backlog } from "../../handoff/publish/backlog.ts";
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
import { CheckedHandoff } from "../../handoff/checked-handoff.ts";

/** Hints come by NOTIFY; polling finds those that are missed. */
const arrivalPollMs = { first: 50, max: 500 };
/** There is no hint for a ticket that another process settles. */
const receiptPollMs = { first: 20, max: 250 };

export class PgHandoff extends CheckedHandoff {
  static {
    traceMethods(this, tracedHandoffMethods);
  }

  readonly #box: PgBox;
  readonly #retention: NonNullable<HandoffOptions["retention"]>;
  readonly #receipts: Arrivals;
  readonly #publisher: PgPublisher;
  readonly #backlog: Backlog;

  constructor(box: PgBox, { leaseMs = 30_000, limits = {}, retention = {} }: HandoffOptions = {}) {
    const { ports, signals } = box.ground;
    const hints = (path: string) => async (wake: () => void) => signals.start(path, wake);
    const arrivals = new Arrivals(ports, { pollMs: arrivalPollMs, watch: hints(box.part.path) });
    const { inFlight } = limits;
    super(new PgSource(box, { arrivals, pause: new PgPause(box), leaseMs, inFlight }), ports);
    this.#box = box;
    this.#retention = { ...retention };
    this.#receipts = new Arrivals(ports, { pollMs: receiptPollMs, watch: hints(box.settledPath) });
    this.#publisher = new PgPublisher(box);
    const { clock } = ports;
    const count = (ids: ReadonlySet<string>): ReturnType<typeof countWaiting> => countWaiting(box, ids);
    this.#backlog = new Backlog({ clock, path: this.directory, count }, limits);
  }

  protected override async publishChecked(publication: Publication): Promise<Published> {
    return await this.#backlog.during((admit) => this.#publisher.publish({ ...publication, admit }));
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
    this.life.mustBeOpen();
    return await this.#describe(await findRow(this.#box, id));
  }

  async findByKey(key: string): Promise<TicketInfo | undefined> {
    this.life.mustBeOpen();
    return await this.find(await idOfKey(this.#box, key));
  }

  protected override listChecked(state: TicketState, options: ListOptions): AsyncGenerator<TicketInfo> {
    return listTickets(this.#box, state, options);
  }

  protected override async waitUntilSettled(id: string, signal: AbortSignal | undefined): Promise<TicketInfo> {
    const stop = signal === undefined ? this.life.closed : AbortSignal.any([signal, this.life.closed]);
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

  protected override readContent(id: string, name: string, options: ContentOptions): AsyncGenerator<Uint8Array> {
    return readContent(this.#box, id, name, options);
  }

  async stats(): Promise<HandoffStats> {
    this.life.mustBeOpen();
    return await statsOf(this.#box);
  }

  async replay(options: ReplayOptions): Promise<number> {
    this.life.mustBeOpen();
    return await replay(this.#box, options);
  }

  async discard(options: DiscardOptions): Promise<number> {
    this.life.mustBeOpen();
    return await discard(this.#box, options);
  }

  async collect(options: Cancel = {}): Promise<Collected> {
    this.life.mustBeOpen();
    return await collect(this.#box, this.#retention, options);
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    this.life.mustBeOpen();
    return await verifyBox(this.#box, options);
  }

  protected override wakeAll(): void {
    this.#box.wake();
  }

  protected override async leave(): Promise<void> {
    await this.#publisher.close();
  }

  async #describe(row: TicketRow | undefined): Promise<TicketInfo | undefined> {
    return row && (await describeRows(this.#box, [row]))[0];
  }

  #unsupported(what: string): Error {
    const message = `${this.directory}: ${what} is only possible with a box in a folder.`;
    return holdfastError("UNSUPPORTED", message, { what, location: this.directory });
  }
}
