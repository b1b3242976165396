// Histories for the tests of the linearizability check: runs of one operation at a time, blurred
// into calls that overlap, and an oracle that tries every order.
import * as fc from "fast-check";
import type { Model, Operation } from "../../src/testing/history/linearizability.ts";

/**
 * One step of a sequential run. `fate`: whether its caller heard of it; one that is "lost" did not
 * even happen.
 */
export interface Step<Input> {
  readonly process: number;
  readonly input: Input;
  readonly fate: "answered" | "unanswered" | "lost";
  /**
   * How far the call lies before the moment, and the return after it, as a part of the room that
   * the process has there.
   */
  readonly early: number;
  readonly late: number;
}

export function stepOf<Input>(input: fc.Arbitrary<Input>, processes: number): fc.Arbitrary<Step<Input>> {
  const fate = fc.oneof(
    { weight: 12, arbitrary: fc.constant("answered" as const) },
    { weight: 1, arbitrary: fc.constantFrom("unanswered" as const, "lost" as const) },
  );
  const part = fc.integer({ min: 0, max: 99 }).map((percent) => percent / 100);
  return fc.record({ process: fc.nat(processes - 1), input, fate, early: part, late: part });
}

export function stepsOf<Input>(
  input: fc.Arbitrary<Input>,
  processes: number,
  lengthMax: number,
): fc.Arbitrary<Step<Input>[]> {
  return fc.array(stepOf(input, processes), { maxLength: lengthMax, size: "max" });
}

/**
 * What `answer` says to the steps in turn, as a history in which each call reaches as far as its
 * process and `reach` (in steps) let it.
 */
export function blurred<Input, Output>(
  steps: readonly Step<Input>[],
  answer: (input: Input, step: Step<Input>) => Output,
  reach = 8,
): Operation<Input, Output>[] {
  // A process that was not answered is dead; its name goes to another.
  const lives = new Map<number, number>();
  const names = steps.map(({ process, fate }) => {
    const life = lives.get(process) ?? 1;
    if (fate !== "answered") lives.set(process, life + 1);
    return `p${process}.${life}`;
  });
  return steps.map((step, at) => {
    const { input, fate, early, late } = step;
    const [before, after] = [names.lastIndexOf(names[at]!, at - 1), names.indexOf(names[at]!, at + 1)];
    // Half of the way to the neighbour belongs to the neighbour.
    const roomBefore = at === 0 || before < 0 ? reach : Math.min(reach, (at - before) / 2);
    const roomAfter = after < 0 ? reach : Math.min(reach, (after - at) / 2);
    const calledAt = at - early * roomBefore;
    const output = fate === "lost" ? undefined : answer(input, step);
    if (fate !== "answered" || output === undefined)
      return { process: names[at]!, input, calledAt, returnedAt: "never" };
    return { process: names[at]!, input, output, calledAt, returnedAt: at + late * roomAfter };
  });
}

/**
 * Tries every order of every subset that has all the answered ones. For histories of a handful of
 * operations.
 */
export function isLinearizableByForce<State, Input, Output>(
  model: Model<State, Input, Output>,
  history: readonly Operation<Input, Output>[],
): boolean {
  const go = (state: State, rest: readonly Operation<Input, Output>[]): boolean => {
    if (rest.every(({ returnedAt }) => returnedAt === "never")) return true;
    return rest.some((operation) => {
      const isTooEarly = rest.some(({ returnedAt }) => returnedAt !== "never" && returnedAt < operation.calledAt);
      if (isTooEarly) return false;
      const next = model.apply(state, operation.input, operation.output);
      const others = rest.filter((other) => other !== operation);
      return next !== undefined && go(next, others);
    });
  };
  return go(model.initial, history);
}
