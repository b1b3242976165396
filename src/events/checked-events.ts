// The part of an event store that all engines share: it checks arguments, assigns ids and encodes events. The engine
// does the rest.
import { types } from "node:util";
import type { Cancel, NewEvent, SequencedEvent, VerifyOptions, VerifyReport } from "../common.ts";
import { checkTimeout } from "../durable/wait/deadline.ts";
import { checkOptions, type OptionNames } from "../format/known-options.ts";
import { makeUuid } from "../format/uuid.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { consume } from "./follow/consumer.ts";
import { listConsumers } from "./follow/consumer-list.ts";
import { subscribe } from "./follow/subscribe.ts";
import type { Retag, StoredCondition } from "./log/format/line.ts";
import { giveAccess, type LogAccess } from "./log/log-access.ts";
import type { EventCodec } from "./model/codec.ts";
import type {
  Appended,
  AppendOptions,
  ConsumerInfo,
  ConsumerOptions,
  EventConsumer,
  EventStore,
  EventStoreOptions,
  ReadOptions,
} from "./model/event-store.ts";
import { checkEvents, checkTags, jsonOf } from "./model/new-event.ts";
import { distinct, itemsOf, type Items, type Matching, type Query } from "./model/query.ts";
import type { EventHead } from "./model/stored-event.ts";
import { TimeWindow } from "./model/time-window.ts";
import { tracedEventMethods } from "./traced-methods.ts";

const readOptions: OptionNames<ReadOptions> = {
  after: true,
  upTo: true,
  backwards: true,
  limit: true,
  since: true,
  until: true,
  signal: true,
};

const timeoutMsDefault = 5000;

/** An append with checked arguments. */
export interface CheckedAppend {
  readonly heads: readonly EventHead[];
  /** The JSON of each event. */
  readonly payload: readonly string[];
  readonly condition: { readonly items: Items; readonly after: number } | undefined;
  /** The condition as a log stores it. */
  readonly stored: StoredCondition | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A call of `addTags` with checked arguments. Whether the positions exist is not checked yet. */
export type CheckedRetag = { readonly retag: Retag } & Pick<CheckedAppend, "timeoutMs" | "signal">;

/** A read with checked arguments. */
export interface CheckedRead {
  readonly items: Items;
  readonly options: ReadOptions;
  readonly window: TimeWindow | undefined;
}

export interface CheckedEventsContext {
  readonly codec: EventCodec;
  readonly access: LogAccess;
  readonly lockTimeoutMs: EventStoreOptions["lockTimeoutMs"];
}

export abstract class CheckedEvents<E extends NewEvent> implements EventStore<E> {
  static {
    traceMethods(this, tracedEventMethods);
  }

  readonly #context: CheckedEventsContext;

  constructor(context: CheckedEventsContext) {
    if (context.lockTimeoutMs !== undefined) checkTimeout(context.lockTimeoutMs);
    this.#context = context;
    giveAccess(this, context.access);
  }

  protected abstract add(append: CheckedAppend): Promise<Appended>;
  /** Throws a RangeError if there is no event at a position. */
  protected abstract retag(call: CheckedRetag): Promise<void>;
  protected abstract readChecked(read: CheckedRead): AsyncIterable<SequencedEvent>;
  abstract head(): Promise<number>;
  abstract bytes(): Promise<number>;
  abstract verify(options?: VerifyOptions): Promise<VerifyReport>;
  abstract close(): Promise<void>;

  async append(events: E | readonly E[], options: AppendOptions<E["type"]> = {}): Promise<Appended> {
    checkOptions("append", options, { condition: true, timeoutMs: true, signal: true });
    const { condition, timeoutMs = this.#timeoutMs, signal } = options;
    checkOptions("append: condition", condition, { failIfEventsMatch: true, after: true });
    checkTimeout(timeoutMs);
    signal?.throwIfAborted();
    const list = checkEvents(events);
    const items = condition === undefined ? undefined : itemsOf(condition.failIfEventsMatch);
    const after = checkCount(condition?.after ?? 0, "after");
    const heads = list.map((event) => this.#headOf(event));
    const encoded = list.map((event, index) => this.#context.codec.encode(event, heads[index]?.id ?? ""));
    // Avoids a promise if the codec needs none.
    const bodies = encoded.every(isNow) ? encoded : await Promise.all(encoded.map(async (body) => body));
    const payload = bodies.map((body, index) => jsonOf(heads[index]?.type ?? "", body));
    const stored = items === undefined ? undefined : storedCondition(items, condition?.after);
    const judged = items === undefined ? undefined : { items, after };
    return await this.add({ heads, payload, condition: judged, stored, timeoutMs, signal });
  }

  read<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options: ReadOptions = {},
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>> {
    // Checked at the call, not at the first event, so that the stack trace shows the mistake.
    const items = itemsOf(query ?? "all");
    checkOptions("read", options, readOptions);
    for (const name of ["after", "upTo", "limit"] as const) checkCount(options[name] ?? 0, name);
    const read = { items, options, window: TimeWindow.of(options) };
    return this.readChecked(read) as AsyncIterable<SequencedEvent<Matching<E, Q>>>;
  }

  async last<const Q extends Query<E["type"]> = "all">(query?: Q): Promise<SequencedEvent<Matching<E, Q>> | undefined> {
    for await (const event of this.read(query, { backwards: true, limit: 1 })) return event;
    return undefined;
  }

  subscribe<const Q extends Query<E["type"]> = "all">(
    query?: Q,
    options: Cancel & { after?: number | undefined } = {},
  ): AsyncIterable<SequencedEvent<Matching<E, Q>>> {
    checkOptions("subscribe", options, { after: true, signal: true });
    return subscribe<E, Q>(this, this.#context.access, query ?? ("all" as Q), options);
  }

  consume<const Q extends Query<E["type"]>>(
    name: string,
    query: Q,
    handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
    options?: ConsumerOptions,
  ): EventConsumer {
    checkOptions("consume", options, { batch: true, from: true, signal: true });
    return consume<E, Q>(this, this.#context.access, name, query, handler, options);
  }

  async consumers(): Promise<ConsumerInfo[]> {
    return await listConsumers(this.#context.access, () => this.head());
  }

  async addTags(positionsGiven: readonly number[], tags: readonly string[], { signal }: Cancel = {}): Promise<void> {
    if (!Array.isArray(positionsGiven) || positionsGiven.length === 0)
      throw new TypeError("addTags takes a list of positions.");
    // A copy: the caller may change its list, and the positions are needed again once the line is durable.
    const positions: readonly number[] = [...positionsGiven];
    for (const position of positions) checkCount(position, "a position");
    const retag = { positions, tags: checkTags("(tags to add)", tags) };
    if (retag.tags.length === 0) throw new TypeError("addTags takes at least one tag.");
    await this.retag({ retag, timeoutMs: this.#timeoutMs, signal });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #timeoutMs(): number {
    return this.#context.lockTimeoutMs ?? timeoutMsDefault;
  }

  #headOf({ type, tags = [], id }: NewEvent): EventHead {
    const { clock, random } = this.#context.access.ports;
    if (id !== undefined) return { type, tags: distinct(tags), id, given: true };
    return { type, tags: distinct(tags), id: makeUuid(clock.wallMs(), random.bytes(16)) };
  }
}

/** Throws a RangeError for a position beyond `head`. */
export function mustExist(positions: readonly number[], head: number): void {
  const missing = positions.find((position) => position < 1 || position > head);
  if (missing !== undefined) throw new RangeError(`There is no event at position ${missing}: the head is ${head}.`);
}

function isNow<T>(value: T | Promise<T>): value is T {
  return !types.isPromise(value);
}

function storedCondition(items: Items, after: number | undefined): StoredCondition {
  return after === undefined ? { if: items } : { if: items, after };
}

function checkCount(value: number, name: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  if (value === Infinity && name !== "after") return value;
  throw new RangeError(`${name} must be a whole number from 0, not ${value}.`);
}
