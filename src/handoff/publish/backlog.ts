// The limits of a box: how many tickets, and how many bytes of payload, may wait or be worked on before a publish is
// refused. A brake, not a promise: processes that publish at the same moment may pass it together by what each of
// them has begun.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { ticketKind } from "../model/manifest.ts";
import { ticketsIn, type FoundTicket } from "../operate/tickets.ts";

export interface BacklogLimits {
  tickets?: number | undefined;
  bytes?: number | undefined;
}

/** A count that is older says too little about what other processes have published since. */
const countedForMs = 1_000;
/** From this part of a limit on every publish counts anew. */
const nearPart = 0.8;

interface Room {
  readonly tickets: number;
  readonly bytes: number;
}

/** A ticket of this process: being published, or published since the last count began. */
interface OwnTicket {
  id?: string;
  bytes: number;
  isPublished: boolean;
}

export class Backlog {
  readonly #box: Box;
  readonly #limits: BacklogLimits;
  /** By ticket: its payload, as the last count has found it. */
  #counted: ReadonlyMap<string, number> = new Map();
  #countedAtMs = -Infinity;
  readonly #own = new Set<OwnTicket>();

  /** RangeError. */
  constructor(box: Box, { tickets, bytes }: BacklogLimits = {}) {
    for (const [name, limit] of Object.entries({ tickets, bytes }))
      if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1))
        throw new RangeError(`limits.${name} must be a whole number from 1, not ${limit}.`);
    this.#box = box;
    this.#limits = { tickets, bytes };
  }

  get isLimited(): boolean {
    return this.#limits.tickets !== undefined || this.#limits.bytes !== undefined;
  }

  /** RESOURCE_BUSY when the box is full now. Publishes nothing, and reserves nothing. */
  async mustHaveRoom(): Promise<void> {
    if (this.isLimited) await this.#admit({ tickets: 1, bytes: 0 });
  }

  /**
   * Runs `publish`, which calls `admit` when it knows the size. RESOURCE_BUSY when the box is full, TOO_LARGE for a
   * payload that would not fit into an empty box.
   */
  async during<T>(publish: (admit: (bytes: number, id: string) => Promise<void>) => Promise<T>): Promise<T> {
    if (!this.isLimited) return await publish(async () => undefined);
    await this.#admit({ tickets: 1, bytes: 0 });
    const own: OwnTicket = { bytes: 0, isPublished: false };
    this.#own.add(own);
    try {
      const published = await publish(async (bytes, id) => {
        await this.#admit({ tickets: 0, bytes });
        Object.assign(own, { bytes, id });
      });
      own.isPublished = true;
      return published;
    } catch (error) {
      this.#own.delete(own);
      throw error;
    }
  }

  async #admit(wanted: Room): Promise<void> {
    const { bytes: bytesMax } = this.#limits;
    if (bytesMax !== undefined && wanted.bytes > bytesMax) {
      const message = `A payload of ${wanted.bytes} bytes does not fit into a box with limits.bytes ${bytesMax}.`;
      throw holdfastError("TOO_LARGE", message, { limit: bytesMax, actual: wanted.bytes });
    }
    if (this.#isFresh() && this.#findFull(wanted, nearPart) === undefined) return;
    // Nothing is refused by an old count.
    await this.#count();
    const full = this.#findFull(wanted, 1);
    if (full !== undefined) throw this.#busy(full);
  }

  #isFresh(): boolean {
    return this.#box.ground.ports.clock.monotonicMs() - this.#countedAtMs < countedForMs;
  }

  /** Which limit would be passed; `part` of it counts. */
  #findFull(wanted: Room, part: number): keyof Room | undefined {
    const used = this.#used();
    return (["tickets", "bytes"] as const).find(
      (what) => used[what] + wanted[what] > (this.#limits[what] ?? Infinity) * part,
    );
  }

  #used(): Room {
    const unseen = [...this.#own].filter(({ id }) => id === undefined || !this.#counted.has(id));
    const sizes = [...this.#counted.values(), ...unseen.map((own) => own.bytes)];
    return { tickets: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
  }

  async #count(): Promise<void> {
    const atMs = this.#box.ground.ports.clock.monotonicMs();
    // The count meets them, or they have moved on.
    for (const own of this.#own) if (own.isPublished) this.#own.delete(own);
    const counted = new Map<string, number>();
    for (const state of ["delayed", "incoming", "processing"] as const)
      for await (const found of ticketsIn(this.#box, state)) {
        const { id } = found.name;
        counted.set(id, this.#counted.get(id) ?? (await this.#sizeOf(found)));
      }
    this.#counted = counted;
    this.#countedAtMs = atMs;
  }

  async #sizeOf({ path }: FoundTicket): Promise<number> {
    if (this.#limits.bytes === undefined) return 0;
    try {
      const ticket = await findRecord(this.#box.disk, ticketKind, path);
      return ticket?.manifest.files.reduce((sum, { size }) => sum + size, 0) ?? 0;
    } catch (error) {
      // Damaged, or on its way: it counts as a ticket without a payload.
      if (isUnreadable(error) || hasErrno(error, "ESTALE")) return 0;
      throw error;
    }
  }

  #busy(what: keyof Room): Error {
    const path = this.#box.layout.directory;
    const message = `${path} is full: ${this.#used()[what]} of at most ${this.#limits[what]} ${what} wait or are worked on (limits.${what}). Nothing was published. Publish it again when consumers have caught up.`;
    return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }
}
