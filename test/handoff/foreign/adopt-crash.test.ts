// A process dies, or its disk fails, at any call of an adoption. The rest of this is in the deep suite.
import { expect, it } from "vitest";
import { failAtEveryCall, faults, killAtEveryCall, takeOverByTwo, works } from "./crashing-adopter.ts";

const [byDoneFile, byRename] = works;

it("if an adopter dies at any call, the next one makes exactly one ticket", async () => {
  expect(byRename?.[0]).toBe("a rename");
  await killAtEveryCall(byRename!);
});

it("two processes that take over the claim of a dead one make one ticket of it", async () => {
  await takeOverByTwo(byDoneFile!);
});

it("a disk that is full at any call loses no file, and makes no second ticket", async () => {
  await failAtEveryCall(byDoneFile!, faults[0]!);
});
