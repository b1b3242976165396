// A disk call of a publish fails: what the producer was told holds afterwards. All faults at all calls are tried by
// the deep suite.
import { expect, it } from "vitest";
import { faults, findFailures, works } from "./failing-publish.ts";

const [small, large, grouped] = works;
const quick = faults.filter(({ label }) => label !== "EIO" && label !== "EACCES");

it.each(quick)("$label at each call (for good: $lasting) of a keyed publish: its answer holds", async (fault) => {
  expect(await findFailures(small!, fault, false)).toEqual([]);
});

it("a disk that is full at any call leaves nothing of a large ticket, and throws DISK_FULL", async () => {
  expect(await findFailures(large!, { label: "ENOSPC", lasting: false }, false)).toEqual([]);
});

it("a keyed ticket of a group whose lane could not be created is entered by the next publish", async () => {
  expect(await findFailures(grouped!, { label: "ESTALE", lasting: false }, false)).toEqual([]);
});
