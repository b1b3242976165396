import { describe, expect, test } from "vitest";
import { quickBounds, statesMaxOf } from "../../src/testing/scenario-bounds.ts";
import { allScenarios } from "../../src/testing/rooms/index.ts";
import { exploreListed } from "./exploring.ts";

describe("every schedule of a small scenario keeps every promise, and there are at most 5,000 states", () =>
  exploreListed({
    isWanted: ({ size }) => size === "small",
    bounds: { statesMax: statesMaxOf.small },
    expectOf: ({ scenario, exhausted }) => expect([scenario, exhausted]).toEqual([scenario, true]),
  }));

describe("schedules of a larger scenario with at most two preemptions keep every promise", () =>
  exploreListed({
    isWanted: ({ size }) => size !== "small",
    bounds: quickBounds,
    expectOf: () => undefined,
  }));

test("no two scenarios have the same name", () => {
  const names = allScenarios().map(({ scenario }) => scenario.name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
