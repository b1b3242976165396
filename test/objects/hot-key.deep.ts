// One key and 32 processes.
import { expect, test } from "vitest";
import { checkCrowd, checkRivals, countLostByArchiving } from "./hot-key-checks.ts";

const size = { processes: 32, putsEach: 20 };

test("640 puts of 32 processes to one key are 640 versions", { timeout: 600_000 }, async () => {
  await checkCrowd(size);
});

test(
  "exactly one of 32 conditional writers in eight processes wins each of 100 rounds",
  { timeout: 600_000 },
  async () => {
    await checkRivals({ processes: 8, putsEach: 4, rounds: 100 });
  },
);

test("a gateway that archives the current version and overwrites it loses versions", { timeout: 600_000 }, async () => {
  expect(await countLostByArchiving({ ...size, putsEach: 100 })).toBeGreaterThan(0);
});
