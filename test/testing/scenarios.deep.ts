import { describe, expect } from "vitest";
import { deepBoundsOf } from "../../harness/scenario-bounds.ts";
import { exploreListed } from "./exploring.ts";

describe("every schedule of a medium scenario keeps every promise, and there are at most 150,000 states", () =>
  exploreListed({
    isWanted: ({ size }) => size === "medium",
    bounds: deepBoundsOf.medium,
    expectOf: ({ scenario, exhausted }) => expect([scenario, exhausted]).toEqual([scenario, true]),
  }));

describe("2,000 states of a large scenario with at most two preemptions keep every promise", () =>
  exploreListed({
    isWanted: ({ size }) => size === "large",
    bounds: deepBoundsOf.large,
    expectOf: () => undefined,
  }));
