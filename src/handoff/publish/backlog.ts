// The limits of a box: how many tickets, and how many bytes of payload, may be waiting or claimed
// before a publish is refused. A process counts its own tickets exactly. It knows those of others
// from a count of all names. The longer such a count takes, the longer it is reused, so counting
// takes a small part of the time, however many tickets wait. Processes that publish at the same
// moment may therefore exceed a limit together.
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Published } from "../model/publication.ts";

export interface BacklogLimits {
  tickets?: number | undefined;
  bytes?: number | undefined;
}

/** How long a count is used. Afterwards, other processes may have published many tickets. */
const countedForMs = 1_000;
/** At this fraction of a limit, a publish counts the box anew, unless the last count was expensive. */
const nearPart = 0.8;
/**
 * A count that took longer than `dearMs` is expensive: it is used for `dearFactor` times as long as
 * it took, even near a limit.
 */
const dearMs = 20;
const dearFactor = 20;

/** The box, as far as its limits need it. */
export interface CountedBox {
  readonly clock: Clock;
  /** For messages. */
  readonly path: string;
  /** Counts what waits or is claimed. `ids` are tickets of this process: `met` are those of them that were counted. */
  count(ids: ReadonlySet<string>, options: { readonly withBytes: boolean }): Promise<CountedTickets>;
}

export interface CountedTickets extends TicketTotals {
  readonly met: ReadonlySet<string>;
}

interface TicketTotals {
  readonly tickets: number;
  readonly bytes: number;
}

/** A ticket that this process is publishing. */
interface OwnTicket extends TicketTotals {
  readonly tickets: 1;
  bytes: number;
  id?: string;
}

/** The result of a count. */
interface Count extends CountedTickets {
  /** When the count began. */
  readonly atMs: number;
  readonly tookMs: number;
}

const nothing: TicketTotals = { tickets: 0, bytes: 0 };

export class Backlog {
  readonly #box: CountedBox;
  readonly #limits: BacklogLimits;
  #count: Count = { ...nothing, atMs: -Infinity, tookMs: 0, met: new Set() };
  #counting: Promise<void> | undefined;
  readonly #publishing = new Set<OwnTicket>();
  /** What this process published since the last count began, or the one in progress. */
  #published: TicketTotals = nothing;
  #publishedWhileCounting: OwnTicket[] = [];
  /** Ids of the tickets that this process was publishing when the last count began, or has begun since. */
  #recentIds = new Set<string>();

  /** Throws a RangeError. */
  constructor(box: CountedBox, { tickets, bytes }: BacklogLimits = {}) {
    for (const [name, limit] of Object.entries({ tickets, bytes }))
      if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1))
        throw new RangeError(`limits.${name} must be a whole number from 1, not ${limit}.`);
    this.#box = box;
    this.#limits = { tickets, bytes };
  }

  get isLimited(): boolean {
    return this.#limits.tickets !== undefined || this.#limits.bytes !== undefined;
  }

  /** Throws RESOURCE_BUSY if the box is full now. Publishes nothing, and reserves nothing. */
  async mustHaveRoom(): Promise<void> {
    if (!this.isLimited) return;
    await this.#refresh({ tickets: 1, bytes: 0 });
    this.#mustFit({ tickets: 1, bytes: 0 });
  }

  /**
   * Runs `publish`, which calls `admit` once it knows the size. Throws RESOURCE_BUSY if the box is
   * full, TOO_LARGE for a payload that would not fit into an empty box.
   */
  async during(
    publish: (admit: (bytes: number, id: string) => Promise<void>) => Promise<Published>,
  ): Promise<Published> {
    if (!this.isLimited) return await publish(async () => undefined);
    const own: OwnTicket = { tickets: 1, bytes: 0 };
    await this.#refresh(own);
    // Checked and reserved in one step: concurrent publishes of this process must not use the same
    // free room.
    this.#mustFit(own);
    this.#publishing.add(own);
    try {
      const published = await publish(async (bytes, id) => {
        own.id = id;
        this.#recentIds.add(id);
        this.#mustFitIntoEmptyBox(bytes);
        await this.#refresh({ tickets: 0, bytes });
        this.#mustFit({ tickets: 0, bytes });
        own.bytes = bytes;
      });
      if (!published.duplicate) this.#addPublished(own);
      return published;
    } finally {
      this.#publishing.delete(own);
    }
  }

  #addPublished(own: OwnTicket): void {
    if (this.#counting !== undefined) this.#publishedWhileCounting.push(own);
    if (own.id === undefined || !this.#count.met.has(own.id)) this.#published = sumOf([this.#published, own]);
  }

  #mustFitIntoEmptyBox(bytes: number): void {
    const { bytes: bytesMax = Infinity } = this.#limits;
    if (bytes <= bytesMax) return;
    const message = `A payload of ${bytes} bytes does not fit into a box with limits.bytes ${bytesMax}.`;
    throw holdfastError("TOO_LARGE", message, { limit: bytesMax, actual: bytes });
  }

  #mustFit(wanted: TicketTotals): void {
    const full = this.#findFull(wanted, 1);
    if (full !== undefined) throw this.#busy(full);
  }

  /** Counts again if the last count is too old to rely on. */
  async #refresh(wanted: TicketTotals): Promise<void> {
    const { atMs, tookMs } = this.#count;
    const ageMs = this.#box.clock.monotonicMs() - atMs;
    const isDear = tookMs > dearMs;
    const isFresh = ageMs < (isDear ? Math.max(countedForMs, tookMs * dearFactor) : countedForMs);
    if (isFresh && (isDear || this.#findFull(wanted, nearPart) === undefined)) return;
    // One count for all concurrent callers.
    this.#counting ??= this.#countAll().finally(() => (this.#counting = undefined));
    await this.#counting;
  }

  /** Returns the limit that would be exceeded if each limit were `part` of its size. */
  #findFull(wanted: TicketTotals, part: number): keyof TicketTotals | undefined {
    const used = this.#used();
    return (["tickets", "bytes"] as const).find(
      (what) => used[what] + wanted[what] > (this.#limits[what] ?? Infinity) * part,
    );
  }

  #used(): TicketTotals {
    const { met } = this.#count;
    const unseen = [...this.#publishing].filter(({ id }) => id === undefined || !met.has(id));
    return sumOf([this.#count, this.#published, ...unseen]);
  }

  async #countAll(): Promise<void> {
    const { clock } = this.#box;
    const atMs = clock.monotonicMs();
    this.#publishedWhileCounting = [];
    this.#recentIds = new Set([...this.#publishing].flatMap(({ id }) => id ?? []));
    const counted = await this.#box.count(this.#recentIds, { withBytes: this.#limits.bytes !== undefined });
    this.#count = { ...counted, atMs, tookMs: clock.monotonicMs() - atMs };
    const { met } = counted;
    this.#published = sumOf(this.#publishedWhileCounting.filter(({ id }) => id === undefined || !met.has(id)));
  }

  #busy(what: keyof TicketTotals): Error {
    const { path } = this.#box;
    const message = `${path} is full: ${this.#used()[what]} of at most ${this.#limits[what]} ${what} are waiting or claimed (limits.${what}). Nothing was published. Publish it again when consumers have caught up.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }
}

function sumOf(rooms: readonly TicketTotals[]): TicketTotals {
  let [tickets, bytes] = [0, 0];
  for (const room of rooms) {
    tickets += room.tickets;
    bytes += room.bytes;
  }
  return { tickets, bytes };
}
