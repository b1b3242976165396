// Searches for a linearization: orders the operations of one history as a model allows, or shows how far that is
// possible.
//
// It follows Wing and Gong, with the memo and the laziness of Lowe. It walks along the calls and returns, and decides
// only when an operation returns that has no position in the order yet. Then it, or another pending operation before
// it, gets the next position. A situation consists of the point in the walk, the pending operations that have a
// position, and the state. No situation is visited twice.
import type { Model, Operation } from "./linearizability.ts";

export type SearchResult<State, Input, Output> =
  | { readonly kind: "ordered"; readonly steps: number }
  /** The limit of steps was reached. */
  | { readonly kind: "tired"; readonly steps: number; readonly returnsPassed: number }
  | DeadEnd<State, Input, Output>;

/** The furthest point that any order reaches. */
export interface DeadEnd<State, Input, Output> {
  readonly kind: "stuck";
  readonly steps: number;
  readonly prefix: readonly Operation<Input, Output>[];
  readonly misfit: Operation<Input, Output>;
  /** The states that these orders lead to; only a few of them. */
  readonly states: readonly State[];
  /** The other operations that were pending without a position. */
  readonly open: readonly Operation<Input, Output>[];
}

interface Event {
  /** Index of the operation. */
  readonly of: number;
  readonly isReturn: boolean;
}

/** How far an order has come. */
interface SearchPoint<State> {
  /** The index of the next event. */
  readonly position: number;
  /** Operations that were called, have not returned, and have no position in the order yet. */
  readonly open: readonly number[];
  /** Operations that have a position but have not returned; ascending. */
  readonly placed: readonly number[];
  readonly state: State;
  readonly trail: Trail | undefined;
}

/** The order so far, last operation first. */
interface Trail {
  readonly last: number;
  readonly before: Trail | undefined;
}

interface Fork<State> extends SearchPoint<State> {
  readonly candidates: readonly number[];
  next: number;
}

const statesShownMax = 4;

export function searchLinearization<State, Input, Output>(
  model: Model<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
  stepsMax: number,
): SearchResult<State, Input, Output> {
  return new Search(model, history, stepsMax).run();
}

class Search<State, Input, Output> {
  readonly #model: Model<State, Input, Output>;
  readonly #operations: readonly Operation<Input, Output>[];
  readonly #events: readonly Event[];
  readonly #isIdle: readonly boolean[];
  readonly #stepsMax: number;
  readonly #seen = new Set<string>();
  readonly #forks: Fork<State>[] = [];
  #farthest: SearchPoint<State>[] = [];
  #steps = 0;

  constructor(model: Model<State, Input, Output>, operations: readonly Operation<Input, Output>[], stepsMax: number) {
    this.#model = model;
    this.#operations = operations;
    this.#events = eventsOf(operations);
    this.#isIdle = operations.map(
      ({ input, output, returnedAt }) => returnedAt !== "never" && model.isIdle?.(input, output as Output) === true,
    );
    this.#stepsMax = stepsMax;
  }

  run(): SearchResult<State, Input, Output> {
    const { initial } = this.#model;
    if (this.#goTo({ position: 0, open: [], placed: [], state: initial, trail: undefined }))
      return { kind: "ordered", steps: this.#steps };
    // Depth-first, as a loop: the depth is the length of the history, too much for recursion.
    for (let fork = this.#forks.at(-1); fork !== undefined; fork = this.#forks.at(-1)) {
      const candidate = fork.candidates[fork.next++];
      if (candidate === undefined) {
        this.#forks.pop();
        continue;
      }
      if (this.#steps >= this.#stepsMax) return this.#tired();
      const state = this.#apply(fork, candidate);
      if (state === undefined) continue;
      // Save an operation that never returned and changes nothing here for a later position where it changes
      // something.
      if (this.#operations[candidate]!.returnedAt === "never" && this.#isSame(state, fork.state)) continue;
      if (this.#goTo(placing(fork, candidate, state))) return { kind: "ordered", steps: this.#steps };
    }
    return this.#stuck();
  }

  /**
   * Walks on to the next return that needs a decision. Returns true if there is none: then every operation has a
   * position.
   */
  #goTo(point: SearchPoint<State>): boolean {
    const open = [...point.open];
    const placed = [...point.placed];
    let { position } = point;
    for (; position < this.#events.length; position++) {
      const { of, isReturn } = this.#events[position]!;
      if (!isReturn) open.push(of);
      else if (placed.includes(of)) placed.splice(placed.indexOf(of), 1);
      else break;
    }
    if (position === this.#events.length) return true;
    const here: SearchPoint<State> = { ...point, position, open, placed };
    // `open` follows from `position` and `placed`, so it is not part of the key.
    const key = `${position} ${placed.join()} ${this.#model.key(here.state)}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    const record = this.#farthest[0]?.position ?? -1;
    if (position > record) this.#farthest = [here];
    else if (position === record && this.#farthest.length < statesShownMax) this.#farthest.push(here);
    this.#forks.push({ ...here, candidates: this.#candidatesAt(here), next: 0 });
    return false;
  }

  /** Returns the candidates in the order in which they are tried. */
  #candidatesAt({ position, open, state }: SearchPoint<State>): number[] {
    const due = this.#events[position]!.of;
    const returning: number[] = [];
    const endless: number[] = [];
    const inputs = new Set<string>();
    for (const index of open) {
      const operation = this.#operations[index]!;
      if (operation.returnedAt !== "never") {
        // Take an operation that never changes anything as soon as it fits: a later chance may not come, and no other
        // order is lost.
        if (this.#isIdle[index] && this.#apply({ state }, index) !== undefined) return [index];
        if (index !== due) returning.push(index);
        continue;
      }
      // Of operations that never returned and have the same input, any one will do.
      const input = JSON.stringify(operation.input);
      if (!inputs.has(input)) endless.push(index);
      inputs.add(input);
    }
    const returnOf = (index: number): number => Number(this.#operations[index]!.returnedAt);
    return [due, ...returning.sort((a, b) => returnOf(a) - returnOf(b)), ...endless];
  }

  #apply({ state }: { readonly state: State }, index: number): State | undefined {
    this.#steps++;
    const { input, output, returnedAt } = this.#operations[index]!;
    return this.#model.apply(state, input, returnedAt === "never" ? undefined : output);
  }

  #isSame(a: State, b: State): boolean {
    return a === b || this.#model.key(a) === this.#model.key(b);
  }

  #tired(): SearchResult<State, Input, Output> {
    const reached = this.#events.slice(0, this.#farthest[0]?.position ?? 0);
    return { kind: "tired", steps: this.#steps, returnsPassed: reached.filter(({ isReturn }) => isReturn).length };
  }

  #stuck(): SearchResult<State, Input, Output> {
    const [first] = this.#farthest;
    if (first === undefined) throw new Error("A search that is stuck has got stuck somewhere.");
    const misfit = this.#events[first.position]!.of;
    const states = new Map(this.#farthest.map(({ state }) => [this.#model.key(state), state]));
    return {
      kind: "stuck",
      steps: this.#steps,
      prefix: orderOf(first.trail).map((index) => this.#operations[index]!),
      misfit: this.#operations[misfit]!,
      states: [...states.values()],
      open: first.open.filter((index) => index !== misfit).map((index) => this.#operations[index]!),
    };
  }
}

/** Returns the events in the order of time. At equal times calls come first, so that adjacent operations overlap. */
function eventsOf(operations: readonly Operation<unknown, unknown>[]): Event[] {
  const events: (Event & { readonly at: number })[] = [];
  for (const [of, { calledAt, returnedAt }] of operations.entries()) {
    events.push({ of, at: calledAt, isReturn: false });
    if (returnedAt !== "never") events.push({ of, at: returnedAt, isReturn: true });
  }
  return events.sort((a, b) => a.at - b.at || Number(a.isReturn) - Number(b.isReturn));
}

function placing<State>(
  { position, open, placed, trail }: SearchPoint<State>,
  index: number,
  state: State,
): SearchPoint<State> {
  return {
    position,
    open: open.filter((other) => other !== index),
    placed: [...placed, index].sort((a, b) => a - b),
    state,
    trail: { last: index, before: trail },
  };
}

function orderOf(trail: Trail | undefined): number[] {
  const order: number[] = [];
  for (let at = trail; at !== undefined; at = at.before) order.push(at.last);
  return order.reverse();
}
