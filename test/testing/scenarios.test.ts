import { describe, expect, test } from "vitest";
import { statesMaxOf } from "../../harness/scenario-bounds.ts";
import { allScenarios } from "../../harness/rooms/index.ts";
import { exploreListed } from "./exploring.ts";

// States after a power cut count: each of them is audited (decision 72).
describe("every schedule of a small scenario keeps every promise, and there are at most 1,500 states", () =>
  exploreListed({
    isWanted: ({ size }) => size === "small",
    bounds: { statesMax: statesMaxOf.small },
    expectOf: ({ scenario, exhausted, states, crashStates }) => {
      const isSmall = states + crashStates <= statesMaxOf.small;
      expect({ scenario, exhausted, isSmall }).toEqual({ scenario, exhausted: true, isSmall: true });
    },
  }));

test("no two scenarios have the same name", () => {
  const names = allScenarios().map(({ scenario }) => scenario.name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
