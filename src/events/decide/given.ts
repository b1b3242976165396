// Given, when, then: tests of decisions in a few lines, with any test runner.
import type { NewEvent } from "../../common.ts";
import type { EventStore } from "../model/event-store.ts";
import type { Decided } from "./decide.ts";
import {
  checkEqual,
  comparedEventOf,
  refusalFits,
  describeValue,
  describeThrown,
  unexpected,
  type ComparedEvent,
  type Refusal,
} from "./expectation.ts";

/** The first step of a given-when-then test. */
export interface Given<E extends NewEvent> {
  /** Runs `act` at once. It may do anything with the store: decide, append, let two decisions race. */
  when<R>(act: (store: EventStore<E>) => R | Promise<R>): Outcome<E, R>;
}

/**
 * The outcome of a given-when-then test. Each check is a promise that must be awaited. Checks can
 * be chained: `.thenEvents([…]).thenResult(7)`.
 */
export interface Outcome<E extends NewEvent, R> {
  /**
   * Checks that exactly these events were appended, in this order. Compares type, data and tags;
   * the order of tags does not matter.
   */
  thenEvents(expected: readonly E[]): Checked<E, R>;
  /** Checks that `act` succeeded and appended nothing. */
  thenNothing(): Checked<E, R>;
  /**
   * Checks the result of the decision, or the value that `act` returned if that is not a result of
   * `decide`.
   */
  thenResult(expected: ResultIn<R>): Checked<E, R>;
  /** Checks that `act` threw and appended nothing. */
  thenRefuses(expected?: Refusal): Checked<E, R>;
}
/** What a check of an outcome returns: await it, or chain the next check. */
export type Checked<E extends NewEvent, R> = Promise<void> & Outcome<E, R>;
/** The result of a decision, or R itself if it is not a result of `decide`. */
export type ResultIn<R> = R extends Decided<infer Result> ? Result : R;

/** Appends `events` to the empty `store` before `when`. */
export function givenOn<E extends NewEvent>(events: readonly E[], store: EventStore<E>): Given<E> {
  return { when: (act) => outcomeOf(run(store, events, act)) };
}

interface ActResult<R> {
  readonly appended: readonly ComparedEvent[];
  readonly ended: { readonly value: R } | { readonly error: unknown };
}

async function run<E extends NewEvent, R>(
  store: EventStore<E>,
  events: readonly E[],
  act: (store: EventStore<E>) => R | Promise<R>,
): Promise<ActResult<R>> {
  if (events.length > 0) await store.append(events);
  const after = await store.head();
  const ended = await endOf(async () => await act(store));
  const appended: ComparedEvent[] = [];
  for await (const event of store.read("all", { after })) appended.push(comparedEventOf(event));
  return { appended, ended };
}

async function endOf<R>(act: () => Promise<R>): Promise<ActResult<R>["ended"]> {
  try {
    return { value: await act() };
  } catch (error) {
    return { error };
  }
}

function outcomeOf<E extends NewEvent, R>(
  ran: Promise<ActResult<R>>,
  before: Promise<void> = Promise.resolve(),
): Outcome<E, R> {
  const and = (check: (ran: ActResult<R>) => void): Checked<E, R> => {
    const checked = before.then(async () => check(await ran));
    return Object.assign(checked, outcomeOf<E, R>(ran, checked));
  };
  return {
    thenEvents: (expected) =>
      and(({ appended, ended }) => {
        if ("error" in ended)
          throw refused(`these events:\n${describeValue(expected.map(comparedEventOf))}`, ended.error);
        checkEqual("The appended events differ from the expected ones.", appended, expected.map(comparedEventOf));
      }),
    thenNothing: () =>
      and(({ appended, ended }) => {
        if ("error" in ended) throw refused("that nothing happens", ended.error);
        checkEqual("Nothing should have been appended.", appended, []);
      }),
    thenResult: (expected) =>
      and(({ ended }) => {
        if ("error" in ended) throw refused(`the result:\n${describeValue(expected)}`, ended.error);
        checkEqual("The result differs from the expected one.", resultOf(ended.value), expected);
      }),
    thenRefuses: (expected) =>
      and(({ appended, ended }) => {
        if (!("error" in ended))
          throw unexpected(`Expected a refusal, but these events were appended:\n${describeValue(appended)}`);
        if (expected !== undefined && !refusalFits(expected, ended.error))
          throw unexpected(
            `Expected a refusal that matches ${describeValue(expected)}, but it was: ${describeThrown(ended.error)}`,
            ended.error,
          );
        checkEqual("It refused, but had already appended something.", appended, []);
      }),
  };
}

function refused(what: string, error: unknown): Error {
  return unexpected(`Expected ${what}\nbut it was refused: ${describeThrown(error)}`, error);
}

function resultOf(value: unknown): unknown {
  const isDecided = typeof value === "object" && value !== null && "attempts" in value && "result" in value;
  return isDecided ? value.result : value;
}
