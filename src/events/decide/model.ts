// Decision models: which events a decision rests on, and what they fold to.
import type { NewEvent, SequencedEvent } from "../../common.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";
import { checkSnapshot, type SnapshotDefinition } from "./snapshot.ts";
import { findCopy } from "./state-copy.ts";

export interface ModelDefinition<S, E extends NewEvent> {
  query: Query<E["type"]>;
  /** Plain data: every decision begins with a copy of its own, so that an `apply` that changes its state in place does no harm to the next one. */
  initial: S;
  /** Gives the state after the event. The same event may be folded by other models too: never change it. */
  apply: (state: NoInfer<S>, event: SequencedEvent<E>) => NoInfer<S>;
  /** Keeps the state of long histories beside the log. Default: none. */
  snapshot?: SnapshotDefinition | undefined;
}

/** S is what it folds to, E what it folds. Only the fold is public: two models with equal queries may share one read. */
export interface DecisionModel<S, E extends NewEvent = NewEvent> {
  readonly query: Query;
  readonly initial: S;
  readonly snapshot?: SnapshotDefinition;
  fold(state: S, event: SequencedEvent<E>): S;
}

/** TypeError for what is no query, for an initial state that is not plain data, and, with a snapshot, for one that JSON cannot carry. */
export function model<S, E extends NewEvent = NewEvent>(definition: ModelDefinition<S, E>): DecisionModel<S, E> {
  const { query, initial, apply, snapshot } = definition;
  itemsOf(query);
  const copy = findCopy(initial);
  if (copy === undefined) throw new TypeError("The initial state of a model is plain data: no functions, no classes.");
  if (snapshot !== undefined) checkSnapshot(snapshot, initial);
  // The copy, so that nothing which the caller does with his own object later can reach a decision.
  return { query, initial: copy.state, ...(snapshot && { snapshot }), fold: (state, event) => apply(state, event) };
}

/** `const model = modelsOf<Sold | Stocked>()`: the event in `apply` is then narrowed by the query's types, nothing to annotate. */
export function modelsOf<E extends NewEvent>(): <S, const Q extends Query<E["type"]>>(definition: {
  query: Q;
  initial: S;
  apply: (state: NoInfer<S>, event: SequencedEvent<Matching<E, Q>>) => NoInfer<S>;
  snapshot?: SnapshotDefinition | undefined;
}) => DecisionModel<S, Matching<E, Q>> {
  return ({ query, initial, apply, snapshot }) => model({ query, initial, apply, snapshot });
}

// oxlint-disable-next-line typescript/no-explicit-any -- each model has a state and events of its own; StatesOf finds them again
export type Models = Readonly<Record<string, DecisionModel<any, any>>>;

export type StatesOf<M extends Models> = {
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever it folds
  readonly [K in keyof M]: M[K] extends DecisionModel<infer S, any> ? S : never;
};
