// Models of the two simplest shared objects, many of each by key: a register (read, write, compare and set) and a
// counter (read, add).
import type { Model } from "./linearizability.ts";

/** The value of a register. */
export type RegisterValue = string | number | boolean | null;

/** An operation on a register. `key` names the register, for instance a path. Default: there is one. */
export type RegisterInput =
  | { readonly kind: "read"; readonly key?: string }
  | { readonly kind: "write"; readonly key?: string; readonly value: RegisterValue }
  | {
      readonly kind: "compareAndSet";
      readonly key?: string;
      readonly expected: RegisterValue;
      readonly value: RegisterValue;
    };

/**
 * The answer of an operation on a register. `refused`: a compareAndSet found another value and
 * changed nothing.
 */
export type RegisterOutput =
  | { readonly kind: "read"; readonly value: RegisterValue }
  | { readonly kind: "written" }
  /** The answer of a compareAndSet that found another value and changed nothing. */
  | { readonly kind: "refused" };

/**
 * Returns the model of registers with read, write and compareAndSet, one for each key. Default
 * initial value: null.
 */
export function registerModel(
  initial: RegisterValue = null,
): Model<{ readonly value: RegisterValue }, RegisterInput, RegisterOutput> {
  return {
    initial: { value: initial },
    key: ({ value }) => JSON.stringify(value),
    partOf: ({ key = "" }) => key,
    isIdle: (_input, output) => output.kind !== "written",
    apply: (state, input, output) => {
      switch (input.kind) {
        case "read":
          return output === undefined || (output.kind === "read" && output.value === state.value) ? state : undefined;
        case "write":
          return output === undefined || output.kind === "written" ? { value: input.value } : undefined;
        case "compareAndSet": {
          const fits = state.value === input.expected;
          if (output !== undefined && output.kind !== (fits ? "written" : "refused")) return undefined;
          return fits ? { value: input.value } : state;
        }
      }
    },
  };
}

/** An operation on a counter. `key` names the counter. Default: there is one. */
export type CounterInput =
  | { readonly kind: "read"; readonly key?: string }
  | { readonly kind: "add"; readonly key?: string; readonly by: number };

/** The answer of an operation on a counter. */
export type CounterOutput = {
  /** The count at a read, or after an add that reports it. */
  readonly count?: number;
};

/** Returns the model of counters with read and add, one for each key. Default initial value: 0. */
export function counterModel(initial = 0): Model<number, CounterInput, CounterOutput> {
  return {
    initial,
    key: String,
    partOf: ({ key = "" }) => key,
    isIdle: ({ kind }) => kind === "read",
    apply: (state, input, output) => {
      const next = input.kind === "add" ? state + input.by : state;
      return output?.count === undefined || output.count === next ? next : undefined;
    },
  };
}
