// A process dies, or its disk fails in every way, at any call of an adoption by each kind of rule.
import { describe, it } from "vitest";
import { failAtEveryCall, faults, killAtEveryCall, takeOverByTwo, works } from "./crashing-adopter.ts";

describe.each(works)("by %s", (...work) => {
  it("if a process dies at any call, the next process makes exactly one ticket", async () => {
    await killAtEveryCall(work);
  });

  it("two processes that take over the claim of a dead one make one ticket of it", async () => {
    await takeOverByTwo(work);
  });

  it.each(faults)(
    "$label at any call (for good: $lasting): no file is lost, and none makes two tickets",
    async (fault) => {
      await failAtEveryCall(work, fault);
    },
  );
});
