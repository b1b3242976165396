// Decision models: the events that a decision depends on, and how they fold to a state.
import type { NewEvent, SequencedEvent } from "../../common.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";
import { checkSnapshot, type SnapshotDefinition } from "./snapshot.ts";
import { findCopy } from "../model/state.ts";

/** The definition of a decision model. */
export interface ModelDefinition<S, E extends NewEvent> {
  /** The events that the decision depends on. */
  query: Query<E["type"]>;
  /**
   * The state before the first event, as plain data. Every decision starts with a copy, so `apply`
   * may change its state in place.
   */
  initial: S;
  /**
   * Returns the state after the event. It must not change the event, which other models may receive
   * as well.
   */
  apply: (state: NoInfer<S>, event: SequencedEvent<E>) => NoInfer<S>;
  /** Stores the state of long histories beside the log. Default: none. */
  snapshot?: SnapshotDefinition | undefined;
}

/** A model that folds events E to a state S. */
export interface DecisionModel<S, E extends NewEvent = NewEvent> {
  /** The events that the decision depends on. */
  readonly query: Query;
  /** The state before the first event. */
  readonly initial: S;
  /** The snapshot of the model, if any. */
  readonly snapshot?: SnapshotDefinition;
  /** Returns the state after the event. */
  fold(state: S, event: SequencedEvent<E>): S;
}

/**
 * Creates a decision model. Throws a TypeError for an invalid query, for an initial state that is
 * not plain data, and, with a snapshot, for one that is not JSON; INVALID_NAME for the name of a
 * snapshot.
 */
export function model<S, E extends NewEvent = NewEvent>(definition: ModelDefinition<S, E>): DecisionModel<S, E> {
  const { query, initial, apply, snapshot } = definition;
  itemsOf(query);
  const copy = findCopy(initial);
  if (copy === undefined)
    throw new TypeError("The initial state of a model must be plain data: no functions, no classes.");
  if (snapshot !== undefined) checkSnapshot(snapshot, initial);
  // A copy: later changes to the caller's object must not reach a decision.
  return { query, initial: copy.state, ...(snapshot && { snapshot }), fold: (state, event) => apply(state, event) };
}

/**
 * Returns `model` for the event union E: `const model = modelsOf<Sold | Stocked>()`. `apply` then
 * receives the events of the query's types, without annotations.
 */
export function modelsOf<E extends NewEvent>(): <S, const Q extends Query<E["type"]>>(definition: {
  query: Q;
  initial: S;
  apply: (state: NoInfer<S>, event: SequencedEvent<Matching<E, Q>>) => NoInfer<S>;
  snapshot?: SnapshotDefinition | undefined;
}) => DecisionModel<S, Matching<E, Q>> {
  return ({ query, initial, apply, snapshot }) => model({ query, initial, apply, snapshot });
}

/** The models of a decision, by name. */
// oxlint-disable-next-line typescript/no-explicit-any -- each model has its own state and events; StatesOf finds them
export type Models = Readonly<Record<string, DecisionModel<any, any>>>;

/** The states of the models M, by name. */
export type StatesOf<M extends Models> = {
  // oxlint-disable-next-line typescript/no-explicit-any -- any events
  readonly [K in keyof M]: M[K] extends DecisionModel<infer S, any> ? S : never;
};
