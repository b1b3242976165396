// The linearizability check: whether everything that was answered in a history could have been
// answered by one thing that does one operation at a time.
import { searchLinearization, type DeadEnd } from "./linearization.ts";

/** One call in a history, as the caller saw it. Inputs and outputs are plain data. */
export interface Operation<Input, Output> {
  /** The caller; for messages only. What a process did in turn follows from the times. */
  readonly process: string;
  readonly input: Input;
  /** Left out when it never returned. */
  readonly output?: Output;
  /**
   * Index into one log of calls and returns, or a time of one clock. Equal times count as overlap,
   * so a coarse clock hides faults but never invents one.
   */
  readonly calledAt: number;
  /**
   * "never": the caller died or does not know. It may have happened at any time after the call, or
   * not at all.
   */
  readonly returnedAt: number | "never";
}

/** What one operation at a time would do. */
export interface Model<State, Input, Output> {
  readonly initial: State;
  /**
   * The state after `input` was answered by `output`; undefined when it cannot have been. Without
   * an output: what it does if it happens now. Pure.
   */
  readonly apply: (state: State, input: Input, output: Output | undefined) => State | undefined;
  /** Equal for equal states, and for no others. */
  readonly key: (state: State) => string;
  /**
   * Whether an operation with this answer never changes anything, whatever the state: a read, a
   * refusal. Not needed, but without it many reads take long.
   */
  readonly isIdle?: (input: Input, output: Output) => boolean;
  /**
   * What the operation is about (a path, a name of a lock), when operations on different ones have
   * nothing to do with each other. Each is then checked alone.
   */
  readonly partOf?: (input: Input) => string;
}

export interface LinearizabilityOptions {
  /**
   * How often the model may be asked, for each part, before the answer is "unknown". The problem is
   * NP-complete: some histories cannot be decided. Default 1 000 000.
   */
  readonly stepsMax?: number | undefined;
}

export type Linearizability<Input, Output> =
  | { readonly verdict: "linearizable"; readonly steps: number }
  /**
   * Neither proven nor refuted within the limit: too many operations overlap, or too many never
   * returned.
   */
  | { readonly verdict: "unknown"; readonly steps: number; readonly message: string }
  | {
      readonly verdict: "violated";
      readonly steps: number;
      readonly message: string;
      /** The longest beginning that can be put in order, in that order. */
      readonly prefix: readonly Operation<Input, Output>[];
      /** The first operation, by its return, that fits nowhere in any order of those before it. */
      readonly misfit: Operation<Input, Output>;
    };

const stepsMaxDefault = 1_000_000;
/** How much of the prefix a message shows: what matters is near its end. */
const shownMax = 12;

/** "unknown" only when no part is violated. */
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
 * For checks and audits: throws unless it is linearizable. What could not be decided has not passed
 * either, and is said to be so.
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
    open.length === 0 ? "No other operation was under way." : "Also under way, and of no help at any place:",
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
