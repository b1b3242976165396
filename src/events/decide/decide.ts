// Decide: reads the events that a decision depends on, decides, and appends on the condition that
// no such event was appended since. After a conflict it retries until its time is up.
import type { Cancel, NewEvent } from "../../common.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { isHoldfastError } from "../../errors.ts";
import { trace } from "../../telemetry/trace.ts";
import type { AppendCondition, Appended, EventStore } from "../model/event-store.ts";
import { accessOf } from "../log/log-access.ts";
import type { Models, StatesOf } from "./model.ts";
import { DecisionRetry } from "./retry.ts";
import { StatesReader } from "./states.ts";
import { isList } from "../model/query.ts";

/**
 * A decision: events to append (none: nothing is written), or events and a result for the caller.
 * Throw to refuse.
 */
export type Decision<E extends NewEvent, R = unknown> =
  E | readonly E[] | { readonly events: readonly E[]; readonly result: R };

/**
 * The event E as a decision returns it: `const D` keeps literal types, and makes the lists in
 * `data` readonly.
 */
export type Written<E extends NewEvent> = E extends unknown
  ? Omit<E, "data"> & { data: ReadonlyData<E["data"]> }
  : never;
/** Data whose properties and lists are readonly, at every level. */
export type ReadonlyData<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : { readonly [K in keyof T]: ReadonlyData<T[K]> };

/** The type of the result of a decision D; undefined if it has none. */
export type ResultOf<D> = D extends { readonly events: readonly unknown[]; readonly result: infer R } ? R : undefined;

/** The result of `decide`. */
export interface Decided<R> {
  /** The result that the decision returned; undefined if it returned events only. */
  readonly result: R;
  /** The positions of the appended events. Absent if the decision wrote nothing. */
  readonly appended?: Appended;
  /** How many times the decision ran. */
  readonly attempts: number;
}

/** Options of `decide`. */
export interface DecideOptions extends Cancel {
  /**
   * How long to retry after conflicts, with a short random pause before each attempt. 0: one
   * attempt. Conflicting decisions of this process queue; their time in the queue does not count.
   * Default 10,000.
   */
  timeoutMs?: number | undefined;
  /** How often to retry after the first attempt. Default: as often as `timeoutMs` allows. */
  retries?: number | undefined;
}

/**
 * Reads the events of all models, runs the decision, and appends its events on the condition that
 * no event of the models was appended meanwhile. Repeats after a conflict.
 *
 * The decision may run several times, so it must have no effects of its own. It may change its
 * states. Errors of the decision are passed on unchanged, and nothing is written. Throws
 * APPEND_CONDITION_FAILED if the last attempt within `timeoutMs` has a conflict too, and as
 * `append` does.
 *
 * @example
 * ```ts
 * const stock = model<number, Sold | Stocked>({
 *   query: { types: ["Sold", "Stocked"], tags: ["sku:A1"] },
 *   initial: 0,
 *   apply: (left, event) => (event.type === "Stocked" ? left + event.data.count : left - 1),
 * });
 * await decide(events, { stock }, ({ stock: left }) => {
 *   if (left === 0) throw new Error("sold out");
 *   return { type: "Sold", data: { sku: "A1" }, tags: ["sku:A1"] };
 * });
 * ```
 */
export async function decide<
  E extends NewEvent,
  const M extends Models,
  const D extends Decision<E> | Decision<Written<E>>,
>(
  store: EventStore<E>,
  models: M,
  decision: (states: StatesOf<M>, context: { readonly attempt: number; readonly head: number }) => D | Promise<D>,
  { timeoutMs = 10_000, retries = Infinity, signal }: DecideOptions = {},
): Promise<Decided<ResultOf<D>>> {
  if (!(retries >= 0)) throw new RangeError(`retries must be 0 or more, not ${retries}.`);
  checkTimeout(timeoutMs);
  const { directory: location } = accessOf(store);
  return await trace(
    "events.decide",
    () => ({ location }),
    () => decideUntilAppended(store, models, decision, { timeoutMs, retries, signal }),
  );
}

async function decideUntilAppended<
  E extends NewEvent,
  const M extends Models,
  const D extends Decision<E> | Decision<Written<E>>,
>(
  store: EventStore<E>,
  models: M,
  decision: (states: StatesOf<M>, context: { readonly attempt: number; readonly head: number }) => D | Promise<D>,
  { timeoutMs, retries, signal }: DecideOptions & { readonly timeoutMs: number; readonly retries: number },
): Promise<Decided<ResultOf<D>>> {
  const reader = new StatesReader(store, models);
  const retry = new DecisionRetry(accessOf(store), reader.query, { timeoutMs, retries, signal });
  try {
    await retry.begin();
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const { states, head } = await reader.read({ signal });
      const decided = await decision(states as StatesOf<M>, { attempt, head });
      const { events, result } = partsOf<E, ResultOf<D>>(decided as Decision<E, ResultOf<D>>);
      if (events.length === 0) return { result, attempts: attempt };
      try {
        const appended = await store.append(events, { condition: conditionOf<E>(reader, head), signal });
        return { result, appended, attempts: attempt };
      } catch (error) {
        if (!isHoldfastError(error, "APPEND_CONDITION_FAILED")) throw error;
        await retry.waitAfter(error);
      }
    }
  } finally {
    retry.end();
  }
}

/** Without models a decision depends on no event, so it has no condition. */
function conditionOf<E extends NewEvent>(
  { query }: StatesReader,
  after: number,
): AppendCondition<E["type"]> | undefined {
  return query === undefined ? undefined : { failIfEventsMatch: query, after };
}

/** Throws a TypeError for any other value: a forgotten `return` must not look like a decision to write nothing. */
function partsOf<E extends NewEvent, R>(
  decision: Decision<E, R>,
): { readonly events: readonly E[]; readonly result: R } {
  // `ResultOf` is undefined for a decision without a result.
  const nothing = undefined as R;
  if (isList(decision)) return { events: decision, result: nothing };
  if (typeof decision === "object" && decision !== null) {
    if ("type" in decision) return { events: [decision], result: nothing };
    if (isList(decision.events)) return { events: decision.events, result: decision.result };
  }
  throw new TypeError(
    "A decision must return an event, a list of events or { events, result }. To write nothing, return [].",
  );
}
