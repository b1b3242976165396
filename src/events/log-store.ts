// The event store on a log: passes checked calls on to the components of the open log.
import { types } from "node:util";
import type { NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { checkOptions } from "../format/known-options.ts";
import type { Ports } from "../ports/ports.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { CheckedEvents, mustExist, type CheckedAppend, type CheckedRead, type CheckedRetag } from "./checked-events.ts";
import { workOn } from "./follow/log-work.ts";
import { isSegment } from "./log/format/segment.ts";
import { encodeContent } from "./log/format/line.ts";
import type { EventCodec } from "./model/codec.ts";
import type { Appended, EventStoreOptions } from "./model/event-store.ts";
import { OpenedLog, type LogOptions } from "./open/opened-log.ts";
import { StoreAccess } from "./store-access.ts";
import { tracedEventMethods } from "./traced-methods.ts";
import { readSound } from "./transfer/salvage.ts";
import { findUnopenedLog } from "./verify/unopened.ts";
import { verify, verifyDirectory } from "./verify/verify.ts";

export interface LogStoreContext {
  readonly ports: Ports;
  readonly directory: string;
  readonly codec: EventCodec;
}

export class LogEventStore<E extends NewEvent> extends CheckedEvents<E> {
  static {
    traceMethods(this, tracedEventMethods);
  }

  readonly #context: LogStoreContext;
  readonly #options: EventStoreOptions<E> & LogOptions;
  readonly #access: StoreAccess;
  #opening: Promise<OpenedLog> | undefined;
  #log: OpenedLog | undefined;
  #closing: Promise<void> | undefined;
  /** Set once the loops have finished. Until then they read events and save the checkpoint of their current batch. */
  #isClosed = false;
  /**
   * The highest position that this store returned to a caller. It is published, even if the view has not read it yet.
   */
  #returned = 0;
  /** Number of sealed segments passed to the background build. */
  #indexed = 0;
  #building: Promise<unknown> = Promise.resolve();

  /** Does no I/O before the first call, or `open`. */
  constructor(parts: LogStoreContext, options: EventStoreOptions<E> & LogOptions) {
    const access = new StoreAccess({
      ports: parts.ports,
      directory: parts.directory,
      mayForget: options.keys !== undefined,
      open: () => this.#opened(),
      findOpen: () => this.#log,
    });
    super({ codec: parts.codec, access, lockTimeoutMs: options.lockTimeoutMs });
    this.#context = parts;
    this.#options = options;
    this.#access = access;
  }

  /** A log opens although a segment is damaged: the events before the damage can be read. */
  async open(): Promise<this> {
    await this.#openedOrDamage();
    return this;
  }

  protected override async add(append: CheckedAppend): Promise<Appended> {
    const { heads, payload, stored } = append;
    const content = encodeContent({ condition: stored, events: heads, payload });
    const log = this.#ready ?? (await this.#opened());
    if (this.#access.pendingHeadReads !== undefined) await this.#access.pendingHeadReads;
    const appended = await log.appender.append({ ...append, content });
    this.#returned = Math.max(this.#returned, appended.last);
    log.growth.wakeAll();
    this.#buildIndexes(log);
    return appended;
  }

  async head(): Promise<number> {
    const log = await this.#opened();
    return (await log.publisher.tip()).position;
  }

  async bytes(): Promise<number> {
    return await (await this.#opened()).files.bytes();
  }

  protected override async retag({ retag, timeoutMs, signal }: CheckedRetag): Promise<void> {
    const log = this.#ready ?? (await this.#opened());
    // If the head is known, this does not read it: the calls then take effect in the order in which they were made.
    const known = Math.max(log.view.tip.position, this.#returned);
    const { positions } = retag;
    mustExist(positions, positions.every((position) => position <= known) ? known : (await log.advance()).position);
    const content = encodeContent({ retag, events: [], payload: [] });
    await log.appender.append({ content, heads: [], payload: [], retag, timeoutMs, signal });
    log.growth.wakeAll();
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { repair: true, onProgress: true, signal: true });
    const log = await this.#openedOrDamage();
    if ("damage" in log) return await verifyDirectory(this.#context.ports, this.#context.directory, options);
    return await verify(log, options);
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // A log that could not be opened has nothing to close.
    const log = await this.#opening?.catch(() => undefined);
    if (log !== undefined) await workOn(this.#access).close();
    this.#isClosed = true;
    if (log === undefined) return;
    // A merge may take a minute, so it is cancelled. The index of one segment takes a moment and is
    // finished.
    log.view.endMerges();
    await this.#building;
    await log.close();
  }

  /** Returns the log without a promise if it is open, otherwise undefined. */
  get #ready(): OpenedLog | undefined {
    return this.#isClosed ? undefined : this.#log;
  }

  async #opened(): Promise<OpenedLog> {
    if (this.#isClosed) throw holdfastError("CLOSED", `${this.#context.directory} was closed.`, {});
    const { ports, directory, codec } = this.#context;
    this.#opening ??= OpenedLog.open(ports, directory, codec, this.#options);
    try {
      this.#log = await this.#opening;
      this.#buildIndexes(this.#log);
      return this.#log;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  /**
   * Returns the open log, or the damage of a segment that keeps it from opening. Each later
   * call tries to open it again, since the segment may be repaired meanwhile.
   */
  async #openedOrDamage(): Promise<OpenedLog | { readonly damage: unknown }> {
    try {
      return await this.#opened();
    } catch (error) {
      const { ports, directory } = this.#context;
      if (!isHoldfastError(error, "CORRUPT") || !(await isSegment(ports.disk, directory, error.path))) throw error;
      return { damage: error };
    }
  }

  async *#readSound({ items, options }: CheckedRead, damage: unknown): AsyncGenerator<SequencedEvent, void> {
    const { ports, directory, codec } = this.#context;
    const log = await findUnopenedLog(ports, directory);
    try {
      yield* readSound(log, items, options, { codec, damage });
    } finally {
      await log.close();
    }
  }

  /** Builds missing indexes in the background. A reader that needs one earlier builds it. */
  #buildIndexes(log: OpenedLog): void {
    const { length } = log.view.segments;
    if (length === this.#indexed) return;
    this.#indexed = length;
    // Indexes are only a cache: a reader that needs one gets the same error and reports it.
    const build = log.view.buildIndexes().catch(() => undefined);
    this.#building = Promise.all([this.#building, build]);
  }

  protected override async *readChecked(read: CheckedRead): AsyncGenerator<SequencedEvent, void> {
    const { items, options, window } = read;
    const { after = 0, upTo = Infinity, backwards = false, limit = Infinity, signal } = options;
    signal?.throwIfAborted();
    const log = await this.#openedOrDamage();
    if ("damage" in log) return yield* this.#readSound(read, log.damage);
    const head = (await log.advance()).position;
    let left = limit;
    if (left === 0) return;
    const whole = { after, upTo: Math.min(upTo, head) };
    const ranges = window === undefined ? [whole] : await log.view.rangesWithin(window, whole);
    for (const range of backwards ? ranges.reverse() : ranges)
      for await (const list of log.reader.readLists(items, range, backwards))
        for (const stored of list) {
          signal?.throwIfAborted();
          if (window?.has(stored.time) === false) continue;
          const event = log.reader.decode(stored);
          yield types.isPromise(event) ? await event : event;
          if (--left === 0) return;
        }
  }
}
