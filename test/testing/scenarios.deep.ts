import { describe, expect } from "vitest";
import { statesMaxOf } from "../../src/testing/scenario-bounds.ts";
import { exploreListed } from "./exploring.ts";

describe("every schedule of a medium scenario keeps every promise, and there are at most 150,000 states", () =>
  exploreListed({
    isWanted: ({ size }) => size === "medium",
    bounds: { statesMax: statesMaxOf.medium },
    expectOf: ({ scenario, exhausted }) => expect([scenario, exhausted]).toEqual([scenario, true]),
  }));
