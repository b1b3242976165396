// A state that is as large as it may be: the epoch after it has to begin with it, or no process
// could append any more, not even a smaller one.
import { expect, it } from "vitest";
import { recordBytesMax } from "../../src/format/record.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { openList } from "./listed-ids.ts";
import { makeRealPlace } from "../sites/disks.ts";

it("a rolling chain takes a smaller state after every one that it took, however large", async () => {
  const { staging, directory } = await makeRealPlace();
  const chain = await openList(staging, `${directory}/chain`, {
    slotsPerEpoch: 1,
    check: () => undefined,
    sync: false,
  });
  const taken: number[] = [];
  for (let bytes = recordBytesMax; bytes > recordBytesMax - 8192; bytes -= 64) {
    const large = { ids: ["x".repeat(bytes)] };
    const isTaken = await chain
      .append("large", () => large)
      .then(() => true)
      .catch((error: unknown) => {
        if (!isHoldfastError(error, "TOO_LARGE")) throw error;
        return false;
      });
    if (!isTaken) continue;
    taken.push(bytes);
    await chain.append("small", () => ({ ids: [] }));
    if (taken.length === 10) break;
  }
  expect(taken).toHaveLength(10);
});
