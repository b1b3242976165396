// Every disk call of a publish fails once, or for good, with every errno, and every reply is lost.
import { describe, expect, it } from "vitest";
import { faults, findFailures, works } from "./failing-publish.ts";

describe.each([
  ["a local disk", false],
  ["a network mount", true],
] as const)("on %s", (_where, isShare) => {
  describe.each(works)("%s", (...work) => {
    it.each(faults)("$label at each of its calls (for good: $lasting): the answer holds", async (fault) => {
      expect(await findFailures(work, fault, isShare)).toEqual([]);
    });
  });
});
