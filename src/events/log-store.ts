// The event store on a log: checks what a caller gives, and passes it on to the parts of the open
// log.
import type { Cancel, NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { checkTimeout } from "../durable/wait/deadline.ts";
import { holdfastError } from "../errors.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { makeUuid } from "../format/uuid.ts";
import type { Ports } from "../ports/ports.ts";
import type {
  Appended,
  AppendOptions,
  ConsumerOptions,
  EventConsumer,
  EventStore,
  EventStoreOptions,
  ReadOptions,
} from "./model/event-store.ts";
import type { EventCodec } from "./model/codec.ts";
import { distinct, itemsOf, type Matching, type Query } from "./model/query.ts";
import { consume } from "./follow/consumer.ts";
import { workOn } from "./follow/log-work.ts";
import { subscribe } from "./follow/subscribe.ts";
import { giveAccess } from "./log/log-access.ts";
import { encodeContent, type StoredCondition } from "./log/format/line.ts";
import type { EventHead } from "./model/stored-event.ts";
import { checkEvents, checkTags, jsonOf } from "./model/new-event.ts";
import { OpenedLog, type LogOptions } from "./open/opened-log.ts";
import { StoreAccess } from "./store-access.ts";
import { verify } from "./verify/verify.ts";

const readOptions: OptionNames<ReadOptions> = {
  after: true,
  upTo: true,
  backwards: true,
  limit: true,
  signal: true,
};

export interface LogStoreParts {
  readonly ports: Ports;
  readonly directory: string;
  readonly codec: EventCodec;
}

export class LogEventStore<E extends NewEvent> implements EventStore<E> {
  readonly #parts: LogStoreParts;
  readonly #options: EventStoreOptions<E> & LogOptions;
  readonly #access: StoreAccess;
  #opening: Promise<OpenedLog> | undefined;
  #log: OpenedLog | undefined;
  #closing: Promise<void> | undefined;
  /** Set once the loops have drained: until then they read and checkpoint their current batch. */
  #isClosed = false;
  /**
   * The highest position that a caller here was told: it is published, also if the view is not
   * there yet.
   */
  #told = 0;
  /** Sealed segments that were given to the background build. */
  #indexed = 0;
  #building: Promise<void> = Promise.resolve();

  /** Touches nothing before the first call, or `open`. */
  constructor(parts: LogStoreParts, options: EventStoreOptions<E> & LogOptions) {
    if (options.lockTimeoutMs !== undefined) checkTimeout(options.lockTimeoutMs);
    this.#parts = parts;
    this.#options = options;
    this.#access = new StoreAccess({
      ports: parts.ports,
      directory: parts.directory,
      mayForget: options.keys !== undefined,
      open: () => this.#opened(),
      findOpen: () => this.#log,
    });
    giveAccess(this, this.#access);
  }

  async open(): Promise<this> {
    await this.#opened();
    return this;
  }

  async append(events: E | readonly E[], options: AppendOptions<E["type"]> = {}): Promise<Appended> {
    checkOptions("append", options, { condition: true, timeoutMs: true, signal: true });
    const { condition, timeoutMs = this.#options.lockTimeoutMs ?? 5000, signal } = options;
    checkOptions("append: condition", condition, { failIfEventsMatch: true, after: true });
    checkTimeout(timeoutMs);
    signal?.throwIfAborted();
    const list = checkEvents(events);
    const items = condition === undefined ? undefined : itemsOf(condition.failIfEventsMatch);
    const after = checkCount(condition?.after ?? 0, "after");
    const heads = list.map((event) => this.#headOf(event));
    const encoded = list.map((event, index) => this.#parts.codec.encode(event, heads[index]?.id ?? ""));
    // No promise where the codec needs none.
    const bodies = encoded.every(isNow) ? encoded : await Promise.all(encoded.map(async (body) => body));
    const payload = bodies.map((body, index) => jsonOf(heads[index]?.type ?? "", body));
    const stored = items === undefined ? undefined : storedCondition(items, condition?.after);
    const content = encodeContent({ condition: stored, events: heads, payload });
    const log = this.#ready ?? (await this.#opened());
    if (this.#access.looks !== undefined) await this.#access.looks;
    const judged = items === undefined ? undefined : { items, after };
    const appended = await log.appender.append({ content, heads, payload, condition: judged, timeoutMs, signal });
    this.#told = Math.max(this.#told, appended.last);
    log.growth.wakeAll();
    this.#buildIndexes(log);
    return appended;
  }

  read<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options: ReadOptions = {},
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>> {
    // Here, not at the first event: a mistake is reported where it was made.
    const items = itemsOf(query ?? "all");
    checkOptions("read", options, readOptions);
    for (const name of ["after", "upTo", "limit"] as const) checkCount(options[name] ?? 0, name);
    return this.#read(items, options) as AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  }

  async last<const Q extends Query<E["type"]> = "all">(query?: Q): Promise<SequencedEvent<Matching<E, Q>> | undefined> {
    for await (const event of this.read(query, { backwards: true, limit: 1 })) return event;
    return undefined;
  }

  async head(): Promise<number> {
    const log = await this.#opened();
    return (await log.publisher.tip()).position;
  }

  subscribe<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options: Cancel & { after?: number | undefined } = {},
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>> {
    checkOptions("subscribe", options, { after: true, signal: true });
    return subscribe<E, Q>(this, this.#access, query ?? ("all" as Q), options);
  }

  consume<const Q extends Query<E["type"]>>(
    name: string,
    query: Q,
    handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
    options?: ConsumerOptions,
  ): EventConsumer {
    checkOptions("consume", options, { batch: true, from: true, signal: true });
    return consume<E, Q>(this, this.#access, name, query, handler, options);
  }

  async addTags(positionsGiven: readonly number[], tags: readonly string[], { signal }: Cancel = {}): Promise<void> {
    if (!Array.isArray(positionsGiven) || positionsGiven.length === 0)
      throw new TypeError("addTags takes a list of positions.");
    // A copy: the caller may change its list, and it is used again when the line is durable.
    const positions: readonly number[] = [...positionsGiven];
    for (const position of positions) checkCount(position, "a position");
    const log = this.#ready ?? (await this.#opened());
    // No look where the head is known: calls then take effect in their order.
    const known = Math.max(log.view.tip.position, this.#told);
    const head = positions.every((position) => position <= known) ? known : (await log.advance()).position;
    const missing = positions.find((position) => position < 1 || position > head);
    if (missing !== undefined) throw new RangeError(`There is no event at position ${missing}: the head is ${head}.`);
    const retag = { positions, tags: checkTags("(tags to add)", tags) };
    if (retag.tags.length === 0) throw new TypeError("addTags takes at least one tag.");
    const content = encodeContent({ retag, events: [], payload: [] });
    const timeoutMs = this.#options.lockTimeoutMs ?? 5000;
    await log.appender.append({ content, heads: [], payload: [], retag, timeoutMs, signal });
    log.growth.wakeAll();
  }

  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    checkOptions("verify", options, { repair: true, onProgress: true, signal: true });
    return await verify(await this.#opened(), options);
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    // A log that could not be opened has nothing to close.
    const log = await this.#opening?.catch(() => undefined);
    if (log !== undefined) await workOn(this.#access).close();
    this.#isClosed = true;
    if (log === undefined) return;
    // A merge may take a minute, so it is ended. The index of one segment takes a moment, and is
    // finished.
    log.view.endMerges();
    await this.#building;
    await log.close();
  }

  /** The log, if it is open: without a promise. */
  get #ready(): OpenedLog | undefined {
    return this.#isClosed ? undefined : this.#log;
  }

  async #opened(): Promise<OpenedLog> {
    if (this.#isClosed) throw holdfastError("CLOSED", `${this.#parts.directory} was closed.`, {});
    const { ports, directory, codec } = this.#parts;
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

  /** In the background, one build at a time. A reader that needs an index earlier makes it. */
  #buildIndexes(log: OpenedLog): void {
    const { length } = log.view.segments;
    if (length === this.#indexed) return;
    this.#indexed = length;
    // Only a cache: a reader that needs the index meets the same error, and reports it.
    this.#building = this.#building.then(() => log.view.buildIndexes()).catch(() => undefined);
  }

  async *#read(
    items: ReturnType<typeof itemsOf>,
    { after = 0, upTo = Infinity, backwards = false, limit = Infinity, signal }: ReadOptions,
  ): AsyncGenerator<SequencedEvent, void> {
    signal?.throwIfAborted();
    const log = await this.#opened();
    const head = (await log.advance()).position;
    let left = limit;
    if (left === 0) return;
    for await (const list of log.reader.readLists(items, { after, upTo: Math.min(upTo, head) }, backwards))
      for (const stored of list) {
        signal?.throwIfAborted();
        const event = log.reader.decode(stored);
        yield event instanceof Promise ? await event : event;
        if (--left === 0) return;
      }
  }

  #headOf({ type, tags = [], id }: NewEvent): EventHead {
    const { clock, random } = this.#parts.ports;
    if (id !== undefined) return { type, tags: distinct(tags), id, given: true };
    return { type, tags: distinct(tags), id: makeUuid(clock.wallMs(), random.bytes(16)) };
  }
}

function isNow<T>(value: T | Promise<T>): value is T {
  return !(value instanceof Promise);
}

function storedCondition(items: ReturnType<typeof itemsOf>, after: number | undefined): StoredCondition {
  return after === undefined ? { if: items } : { if: items, after };
}

function checkCount(value: number, name: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  if (value === Infinity && name !== "after") return value;
  throw new RangeError(`${name} must be a whole number from 0, not ${value}.`);
}
