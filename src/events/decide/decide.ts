// Decide: reads the events that a decision rests on, decides, and appends on the condition that no
// such event came since. After a conflict it tries again, until its time is up.
import type { Cancel, NewEvent } from "../../common.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { isHoldfastError } from "../../errors.ts";
import type { AppendCondition, Appended, EventStore } from "../model/event-store.ts";
import { accessOf } from "../log/log-access.ts";
import type { Models, StatesOf } from "./model.ts";
import { DecisionRetry } from "./retry.ts";
import { StatesReader } from "./states.ts";

/**
 * Events to append (none: nothing is written), or events and a result for the caller. Throw to
 * refuse.
 */
export type Decision<E extends NewEvent, R = unknown> =
  E | readonly E[] | { readonly events: readonly E[]; readonly result: R };

/**
 * E as a decision returns it: `const D` keeps literal types, and makes the lists in `data`
 * readonly.
 */
export type Written<E extends NewEvent> = E extends unknown
  ? Omit<E, "data"> & { data: ReadonlyData<E["data"]> }
  : never;
type ReadonlyData<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : { readonly [K in keyof T]: ReadonlyData<T[K]> };

export type ResultOf<D> = D extends { readonly events: readonly unknown[]; readonly result: infer R } ? R : undefined;

export interface Decided<R> {
  readonly result: R;
  /** Absent when the decision was to write nothing. */
  readonly appended?: Appended;
  readonly attempts: number;
}

export interface DecideOptions extends Cancel {
  /**
   * How long to try again after conflicts, with a short random pause before each attempt. Default
   * 10_000; 0: one attempt. Decisions of this process that conflict queue up. The time in the queue
   * does not count.
   */
  timeoutMs?: number | undefined;
  /** How many attempts after the first. Default: as many as the time allows. */
  retries?: number | undefined;
}

/**
 * One read for all models, one condition from all of them, and again after a conflict. What the
 * decision throws is passed on untouched, and nothing is written. APPEND_CONDITION_FAILED when the
 * last attempt within `timeoutMs` met a conflict, too. The decision may run several times, so it
 * has no effects of its own. It may change the states that it gets.
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

/** Without models a decision rests on no event, so it has no condition. */
function conditionOf<E extends NewEvent>(
  { query }: StatesReader,
  after: number,
): AppendCondition<E["type"]> | undefined {
  return query === undefined ? undefined : { failIfEventsMatch: query, after };
}

/**
 * TypeError for any other value: a forgotten `return` must not look like a decision to write
 * nothing.
 */
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
    "A decision returns an event, a list of events or { events, result }. To write nothing, return [].",
  );
}

function isList<E>(value: E | readonly E[]): value is readonly E[] {
  return Array.isArray(value);
}
