// PgEvents: an event store in a database.
import type { NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import {
  CheckedEvents,
  mustExist,
  type CheckedAppend,
  type CheckedRead,
  type CheckedRetag,
} from "../../events/checked-events.ts";
import { workOn } from "../../events/follow/log-work.ts";
import { encodeContent } from "../../events/log/format/line.ts";
import { HeadReads } from "../../events/log/head-reads.ts";
import type { LogAccess } from "../../events/log/log-access.ts";
import { LogGrowth } from "../../events/log/read/growth.ts";
import type { EventCodec } from "../../events/model/codec.ts";
import type { Appended, EventStoreOptions } from "../../events/model/event-store.ts";
import { isSameBody, type EventBody } from "../../events/model/stored-event.ts";
import { tracedEventMethods } from "../../events/traced-methods.ts";
import { checkOptions } from "../../format/known-options.ts";
import { randomName } from "../../format/id.ts";
import type { LeaseGround } from "../../part/leases.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import { keyOf } from "../connection/text.ts";
import type { PgPart } from "../parts.ts";
import { AppendQueue } from "./append-queue.ts";
import { DerivedRows } from "./derived-rows.ts";
import { decodeRow, eventColumns, headOf, rangeWithin, readRows, type EventRow } from "./event-rows.ts";
import { verifyLog } from "./verify-log.ts";
import { sha256Of } from "../../format/checksum.ts";

/**
 * Larger payloads are measured exactly: if its line would not fit into a folder, an event could not
 * be copied there.
 */
const uncheckedBytesMax = 1024 * 1024;
const conflictsMax = 100;
const page = { first: 64, max: 1024, growth: 4 };

/** Makes the rows of a new log. */
export const logRows: string = "insert into hf_log (p) select p from made";

export interface PgEventsContext {
  readonly ground: PgGround;
  readonly leases: LeaseGround;
  readonly part: PgPart;
  readonly codec: EventCodec;
}

export class PgEvents<E extends NewEvent = NewEvent> extends CheckedEvents<E> {
  static {
    traceMethods(this, tracedEventMethods);
  }

  readonly #context: PgEventsContext;
  readonly #access: LogAccess;
  readonly #queue: AppendQueue;
  readonly #looks = new HeadReads(() => this.head());
  readonly #growth: LogGrowth;
  /** The highest head that this process has seen. */
  #seen = 0;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(context: PgEventsContext, options: EventStoreOptions<E>) {
    const { ground, leases, part, codec } = context;
    const { database, ports } = ground;
    const access: LogAccess = {
      ports,
      ground,
      directory: part.path,
      derived: new DerivedRows(ground, part),
      mayForget: options.keys !== undefined,
      mayLag: false,
      opened: async () => this.#mustBeOpen(),
      openLeaseGround: async () => leases,
      waitBeyond: (position, cancel) => this.#growth.waitBeyond(position, cancel),
      headBeforeAppends: () => this.#looks.read(),
      findChecksum: (position) => this.#findChecksum(position),
      tagChecksum: () => this.#tagChecksum(),
    };
    super({ codec, access, lockTimeoutMs: options.lockTimeoutMs });
    this.#context = context;
    this.#access = access;
    this.#growth = new LogGrowth(ground, part.path, () => this.head());
    this.#queue = new AppendQueue({
      database,
      clock: ports.clock,
      part: part.p,
      isSynced: options.durability !== "none",
      newId: () => randomName(ports.random.bytes(16)),
      answers: {
        known: (call) => this.#knownAs(call),
        refused: (call, upTo) => this.#refusal(call, upTo),
        appended: (head) => this.#appended(head),
      },
    });
  }

  protected override async add(append: CheckedAppend): Promise<Appended> {
    const { heads, payload, stored } = append;
    if (payload.reduce((sum, body) => sum + body.length, 0) > uncheckedBytesMax)
      encodeContent({ condition: stored, events: heads, payload });
    this.#mustBeOpen();
    if (this.#looks.pending !== undefined) await this.#looks.pending;
    return await this.#queue.append(append);
  }

  protected override async retag(call: CheckedRetag): Promise<void> {
    this.#mustBeOpen();
    const { positions } = call.retag;
    mustExist(positions, positions.every((position) => position <= this.#seen) ? this.#seen : await this.head());
    await this.#queue.retag(call);
    this.#growth.wakeAll();
  }

  protected override async *readChecked({ items, options, window }: CheckedRead): AsyncGenerator<SequencedEvent, void> {
    const { after = 0, upTo = Infinity, backwards = false, limit = Infinity, signal } = options;
    signal?.throwIfAborted();
    const { codec, ground, part } = this.#context;
    const head = await this.head();
    let left = limit;
    if (left === 0) return;
    const inTime = window && (await rangeWithin(ground.database, part.p, window));
    if (window !== undefined && inTime === undefined) return;
    let from = Math.max(after, inTime?.after ?? 0);
    let to = Math.min(upTo, head, inTime?.upTo ?? Infinity);
    for (let size = page.first; left > 0 && from < to; size = Math.min(page.max, page.growth * size)) {
      this.#mustBeOpen();
      const count = Math.min(size, left);
      const rows = await readRows(ground.database, part.p, items, {
        after: from,
        upTo: to,
        backwards,
        limit: count,
        window,
      });
      for (const row of rows) {
        signal?.throwIfAborted();
        yield await decodeRow(codec, row);
      }
      left -= rows.length;
      const last = rows.at(-1);
      if (rows.length < count || last === undefined) return;
      if (backwards) to = last.pos - 1;
      else from = last.pos;
    }
  }

  async head(): Promise<number> {
    this.#mustBeOpen();
    const { ground, part } = this.#context;
    const [row] = await ground.database.query<{ head: number }>("select head from hf_log where p = $1", [part.p]);
    this.#seen = row?.head ?? 0;
    return this.#seen;
  }

  async bytes(): Promise<number> {
    this.#mustBeOpen();
    const { ground, part } = this.#context;
    const [row] = await ground.database.query<{ bytes: number }>("select bytes from hf_log where p = $1", [part.p]);
    return row?.bytes ?? 0;
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { repair: true, onProgress: true, signal: true });
    this.#mustBeOpen();
    const { ground, part } = this.#context;
    return await verifyLog(ground.database, part, options);
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await workOn(this.#access).close();
    this.#isClosed = true;
    this.#growth.close();
    await this.#queue.drained();
  }

  #mustBeOpen(): void {
    if (!this.#isClosed) return;
    throw holdfastError("CLOSED", `${this.#context.ground.location}: ${this.#context.part.path} was closed.`, {});
  }

  #appended(head: number): void {
    this.#seen = Math.max(this.#seen, head);
    this.#growth.wakeAll();
    const { ground, part } = this.#context;
    const { database, ports, signals } = ground;
    signals.wake(part.path);
    signals.notifyLater(database, ports.clock, part.path);
  }

  /** Returns the positions of a call's events whose ids are known. Throws EVENT_ID_REUSED. */
  async #knownAs({ heads, payload }: CheckedAppend): Promise<Appended> {
    const { ground, part } = this.#context;
    const rows = await ground.database.query<EventRow & Record<string, unknown>>(
      `select ${eventColumns} from hf_event e where e.p = $1 and e.id = any ($2::text[])`,
      [part.p, heads.map(({ id }) => keyOf(id))],
    );
    const stored = new Map(rows.map((row) => [headOf(row).id, row]));
    const found: EventRow[] = [];
    for (const [index, head] of heads.entries()) {
      const row = stored.get(head.id);
      if (row === undefined) continue;
      const { type, tags } = headOf(row);
      const isSame =
        type === head.type &&
        tags.length === head.tags.length &&
        tags.every((tag) => head.tags.includes(tag)) &&
        isSameBody(row.body, JSON.parse(payload[index] ?? "null") as EventBody);
      if (!isSame) throw reused(head.id, row, "with other content");
      found.push(row);
    }
    const first = Math.min(...found.map(({ pos }) => pos));
    const isInOrder = found.every(({ pos }, index) => pos === first + index);
    const [one] = found;
    if (one !== undefined && (found.length !== heads.length || !isInOrder))
      throw reused(headOf(one).id, one, "in another append");
    return { first, last: first + found.length - 1, repeated: true };
  }

  async #refusal({ condition }: CheckedAppend, upTo: number): Promise<Error> {
    const { ground, part, codec } = this.#context;
    const { items = [], after = 0 } = condition ?? {};
    const rows = await readRows(ground.database, part.p, items, {
      after,
      upTo,
      backwards: false,
      limit: conflictsMax + 1,
    });
    const conflicts: SequencedEvent[] = [];
    for (const row of rows.slice(0, conflictsMax)) conflicts.push(await decodeRow(codec, row));
    const count = rows.length > conflictsMax ? `over ${conflictsMax}` : rows.length;
    const positions = conflicts.slice(0, 5).map(({ position }) => position);
    const message = `The append condition failed: ${count} event(s) match it, at position ${positions.join(", ")}${conflicts.length > 5 ? ", …" : ""}. Read again and decide again.`;
    return holdfastError("APPEND_CONDITION_FAILED", message, { conflicts });
  }

  /**
   * Returns the checksum of a position. A log that was restored and continued differently has
   * another one.
   */
  async #findChecksum(position: number): Promise<string | undefined> {
    if (position === 0) return "00000000";
    const { ground, part } = this.#context;
    const [row] = await ground.database.query<{ id: string }>("select id from hf_event where p = $1 and pos = $2", [
      part.p,
      position,
    ]);
    return row && sha256Of(row.id).slice(0, 8);
  }

  async #tagChecksum(): Promise<string> {
    const { ground, part } = this.#context;
    const [row] = await ground.database.query<{ mark: string }>("select retag_mark as mark from hf_log where p = $1", [
      part.p,
    ]);
    return row?.mark ?? "00000000";
  }
}

function reused(id: string, { pos: position }: EventRow, how: string): Error {
  const message = `The event id ${JSON.stringify(id)} is at position ${position} already, ${how}. An id names one event for ever.`;
  return holdfastError("EVENT_ID_REUSED", message, { id, position });
}
