// Checks linearizability: whether all answers of a history could come from one thread that executes one operation at
// a time.
import { searchLinearization, type DeadEnd } from "./linearization.ts";

/** One call in a history, as the caller saw it. Inputs and outputs are plain data. */
export interface Operation<Input, Output> {
  /** The caller, for messages only: the order of its calls follows from the times. */
  readonly process: string;
  /** The input of the call. */
  readonly input: Input;
  /** The output of the call. Absent if it never returned. */
  readonly output?: Output;
  /**
   * Index into one log of calls and returns, or a time of one clock. Equal times count as overlap,
   * so a coarse clock hides faults but never invents one.
   */
  readonly calledAt: number;
  /**
   * When it returned. `never`: the caller died or does not know; it may have happened at any time
   * after the call, or not at all.
   */
  readonly returnedAt: number | "never";
}

/** The sequential specification of a shared object. */
export interface Model<State, Input, Output> {
  /** The state before the first operation. */
  readonly initial: State;
  /**
   * Returns the state after `input` was answered by `output`; undefined if that answer is
   * impossible. Without an output: the state if the operation happens now. It must be pure.
   */
  readonly apply: (state: State, input: Input, output: Output | undefined) => State | undefined;
  /** Returns a text that is equal for equal states, and for no others. */
  readonly key: (state: State) => string;
  /**
   * Returns true if an operation with this answer never changes anything, such as a read or a
   * refusal. Without it, many reads take long. Default: none is idle.
   */
  readonly isIdle?: (input: Input, output: Output) => boolean;
  /**
   * Returns the object that an operation concerns (a path, the name of a lock), if operations on
   * different ones are independent. Each is then checked alone. Default: one object.
   */
  readonly partOf?: (input: Input) => string;
}

/** Options of `checkLinearizability`. */
export interface LinearizabilityOptions {
  /**
   * How many steps the model may take for each part before the verdict is `unknown`. The problem is
   * NP-complete: some histories cannot be decided. Default 1,000,000.
   */
  readonly stepsMax?: number | undefined;
}

/** The verdict about a history. `unknown`: neither proven nor refuted within `stepsMax`. */
export type Linearizability<Input, Output> =
  | { readonly verdict: "linearizable"; readonly steps: number }
  /** Neither proven nor refuted within the limit: too many operations overlap, or too many never returned. */
  | { readonly verdict: "unknown"; readonly steps: number; readonly message: string }
  | {
      readonly verdict: "violated";
      readonly steps: number;
      readonly message: string;
      /** The longest prefix of the history that can be ordered, in that order. */
      readonly prefix: readonly Operation<Input, Output>[];
      /** The operation, first by its return, that fits nowhere in any order of those before it. */
      readonly misfit: Operation<Input, Output>;
    };

const stepsMaxDefault = 1_000_000;
/** How many operations of the prefix a message shows. The relevant ones are near its end. */
const shownMax = 12;

/**
 * Checks whether the answers of a history could come from one object that executes one operation at
 * a time. The verdict is `unknown` only if no part is violated. Throws a RangeError for an
 * operation that returned before it was called.
 */
export function checkLinearizability<State, Input, Output>(
  model: Model<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
  { stepsMax = stepsMaxDefault }: LinearizabilityOptions = {},
): Linearizability<Input, Output> {
  for (const operation of history) mustHaveTimes(operation);
  let steps = 0;
  let unknown: string | undefined;
  for (const [part, operations] of partsOf(model, history)) {
    const found = searchLinearization(model, operations, stepsMax);
    steps += found.steps;
    if (found.kind === "stuck") {
      const message = messageOf(model, part, found);
      return { verdict: "violated", steps, message, prefix: found.prefix, misfit: found.misfit };
    }
    if (found.kind === "tired")
      unknown ??= `Not decided${about(part)}: ${found.steps} steps were not enough for ${operations.length} operations, ${neverReturned(operations)} of which never returned. It got past ${found.returnsPassed} returns.`;
  }
  return unknown === undefined
    ? { verdict: "linearizable", steps }
    : {
        verdict: "unknown",
        steps,
        message: `${unknown} Nothing is proven; check shorter histories, or raise stepsMax.`,
      };
}

/**
 * Throws unless a history is linearizable. A history that cannot be decided throws as well. For
 * `check` and `audit`.
 */
export function mustBeLinearizable<State, Input, Output>(
  model: Model<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
  options?: LinearizabilityOptions,
): void {
  const found = checkLinearizability(model, history, options);
  if (found.verdict !== "linearizable") throw new Error(found.message);
}

function mustHaveTimes<Input, Output>(operation: Operation<Input, Output>): void {
  const { calledAt, returnedAt } = operation;
  if (Number.isFinite(calledAt) && (returnedAt === "never" || returnedAt >= calledAt)) return;
  throw new RangeError(`An operation must return after it was called: ${describe(operation)}.`);
}

function partsOf<State, Input, Output>(
  { partOf }: Model<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
): Map<string | undefined, Operation<Input, Output>[]> {
  const parts = new Map<string | undefined, Operation<Input, Output>[]>();
  for (const operation of history) {
    const part = partOf?.(operation.input);
    const operations = parts.get(part);
    if (operations === undefined) parts.set(part, [operation]);
    else operations.push(operation);
  }
  return parts;
}

function messageOf<State, Input, Output>(
  { key }: Model<State, Input, Output>,
  part: string | undefined,
  { prefix, misfit, states, open }: DeadEnd<State, Input, Output>,
): string {
  const lines = (operations: readonly Operation<Input, Output>[]): string[] =>
    operations.map((operation) => `  ${describe(operation)}`);
  const shown = prefix.slice(-shownMax);
  const [single] = states;
  return [
    `Not linearizable${about(part)}. This operation fits nowhere:`,
    ...lines([misfit]),
    prefix.length === 0
      ? "Nothing came before it."
      : `The longest beginning that can be put in order, ${prefix.length} in all${shown.length < prefix.length ? `, of which these are the last ${shown.length}` : ""}:`,
    ...lines(shown),
    states.length === 1 && single !== undefined
      ? `That leaves the state ${key(single)}.`
      : `That, and other orders, leave one of the states ${states.map(key).join(" ; ")}.`,
    open.length === 0 ? "No other operation was in progress." : "Also in progress, and no order with them explains it:",
    ...lines(open.slice(0, shownMax)),
  ].join("\n");
}

function describe<Input, Output>({ process, input, output, calledAt, returnedAt }: Operation<Input, Output>): string {
  const answer = returnedAt === "never" ? "never returned" : `-> ${JSON.stringify(output) ?? "nothing"}`;
  return `${process} [${calledAt}, ${returnedAt === "never" ? "…" : returnedAt}] ${JSON.stringify(input)} ${answer}`;
}

function about(part: string | undefined): string {
  return part === undefined ? "" : ` (${part})`;
}

function neverReturned<Input, Output>(operations: readonly Operation<Input, Output>[]): number {
  return operations.filter(({ returnedAt }) => returnedAt === "never").length;
}
