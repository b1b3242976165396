// The known-wrong variants that are caught soon. The others are in bug-bench.deep.ts.
import { expect, test } from "vitest";
import { mutants } from "../../harness/rooms/index.ts";
import { describeBench, lateMutants } from "./benching.ts";

describeBench(mutants.filter(({ name }) => !lateMutants.includes(name)));

test("each variant that is left to the deep run is one of the bench", () => {
  const names = mutants.map(({ name }) => name);
  expect(lateMutants.filter((name) => !names.includes(name))).toEqual([]);
});
