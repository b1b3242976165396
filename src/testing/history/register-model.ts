// Models of the two smallest things that can be shared: a register (read, write, compare and set)
// and a counter (read, add), many of each by key.
import type { Model } from "./linearizability.ts";

export type RegisterValue = string | number | boolean | null;

/** `key`: which register, for instance a path. Default: there is one. */
export type RegisterInput =
  | { readonly kind: "read"; readonly key?: string }
  | { readonly kind: "write"; readonly key?: string; readonly value: RegisterValue }
  | {
      readonly kind: "compareAndSet";
      readonly key?: string;
      readonly expected: RegisterValue;
      readonly value: RegisterValue;
    };

export type RegisterOutput =
  | { readonly kind: "read"; readonly value: RegisterValue }
  | { readonly kind: "written" }
  /** Of a compare and set: it found something else and changed nothing. */
  | { readonly kind: "refused" };

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

export type CounterInput =
  | { readonly kind: "read"; readonly key?: string }
  | { readonly kind: "add"; readonly key?: string; readonly by: number };

/** The count: of a read, and after an add if it tells. */
export type CounterOutput = { readonly count?: number };

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
