// One key and several processes. The same with 32 processes is in hot-key.deep.ts.
import { expect, test } from "vitest";
import { checkCrowd, checkRivals, countLostByArchiving } from "./hot-key-checks.ts";

test("every put of six processes to one key is a whole version with its own id", async () => {
  await checkCrowd({ processes: 6, putsEach: 10 });
});

test("exactly one of twelve conditional writers in four processes wins each round", async () => {
  await checkRivals({ processes: 4, putsEach: 3, rounds: 4 });
});

test("a gateway that archives the current version and overwrites it loses versions", async () => {
  expect(await countLostByArchiving({ processes: 6, putsEach: 100 })).toBeGreaterThan(0);
});
