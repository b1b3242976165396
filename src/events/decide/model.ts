// Decision models: which events a decision rests on, and how they fold to a state.
import type { NewEvent, SequencedEvent } from "../../common.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";
import { checkSnapshot, type SnapshotDefinition } from "./snapshot.ts";
import { findCopy } from "../model/state.ts";

export interface ModelDefinition<S, E extends NewEvent> {
  query: Query<E["type"]>;
  /**
   * Plain data. Every decision begins with a copy, so an `apply` that changes its state in place
   * does not harm the next one.
   */
  initial: S;
  /** Returns the state after the event. Other models may fold the same event: never change it. */
  apply: (state: NoInfer<S>, event: SequencedEvent<E>) => NoInfer<S>;
  /** Keeps the state of long histories beside the log. Default: none. */
  snapshot?: SnapshotDefinition | undefined;
}

/** A model that folds events E to a state S. */
export interface DecisionModel<S, E extends NewEvent = NewEvent> {
  readonly query: Query;
  readonly initial: S;
  readonly snapshot?: SnapshotDefinition;
  fold(state: S, event: SequencedEvent<E>): S;
}

/**
 * TypeError for a wrong query, for an initial state that is not plain data, and, with a snapshot,
 * for one that is not JSON.
 */
export function model<S, E extends NewEvent = NewEvent>(definition: ModelDefinition<S, E>): DecisionModel<S, E> {
  const { query, initial, apply, snapshot } = definition;
  itemsOf(query);
  const copy = findCopy(initial);
  if (copy === undefined) throw new TypeError("The initial state of a model is plain data: no functions, no classes.");
  if (snapshot !== undefined) checkSnapshot(snapshot, initial);
  // A copy: what the caller does with its object later must not reach a decision.
  return { query, initial: copy.state, ...(snapshot && { snapshot }), fold: (state, event) => apply(state, event) };
}

/**
 * `const model = modelsOf<Sold | Stocked>()`: `apply` then gets the events of the query's types,
 * without annotations.
 */
export function modelsOf<E extends NewEvent>(): <S, const Q extends Query<E["type"]>>(definition: {
  query: Q;
  initial: S;
  apply: (state: NoInfer<S>, event: SequencedEvent<Matching<E, Q>>) => NoInfer<S>;
  snapshot?: SnapshotDefinition | undefined;
}) => DecisionModel<S, Matching<E, Q>> {
  return ({ query, initial, apply, snapshot }) => model({ query, initial, apply, snapshot });
}

// oxlint-disable-next-line typescript/no-explicit-any -- each model has its own state and events; StatesOf finds them
export type Models = Readonly<Record<string, DecisionModel<any, any>>>;

export type StatesOf<M extends Models> = {
  // oxlint-disable-next-line typescript/no-explicit-any -- any events
  readonly [K in keyof M]: M[K] extends DecisionModel<infer S, any> ? S : never;
};
