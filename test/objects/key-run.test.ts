// Runs of sorted keys: found by binary search, whatever their lengths.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { KeyRun, writeRun } from "../../src/objects/listing/key-run.ts";
import { compareKeys } from "../../src/objects/listing/index-line.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";

const lineOf = (key: string) => ({ key, incarnation: "i", isEnded: false });

it("a run yields all keys from any bound on, in UTF-8 byte order", async () => {
  const { disk } = createMemoryPorts(await openNodePorts(makeScratch()));
  await disk.mkdir("/runs");
  let count = 0;
  const key = fc.oneof(
    fc.string({ minLength: 1, maxLength: 6 }),
    fc.string({ minLength: 1, maxLength: 4, unit: "grapheme" }),
    fc.nat(3000).map((length) => `a${"\u0001".repeat(Math.min(length, 1000))}`),
  );
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(key, { maxLength: 60 }), key, async (keys, bound) => {
      const sorted = keys.filter((each) => !/\p{Surrogate}/u.test(each)).sort(compareKeys);
      const path = `/runs/${count++}`;
      const size = await writeRun(disk, path, [sorted.map(lineOf)]);
      await using run = new KeyRun(await disk.open(path, "read"), path, size);
      const found: string[] = [];
      for await (const lines of run.from(bound)) found.push(...lines.map((line) => line.key));
      expect(found).toEqual(sorted.filter((each) => compareKeys(each, bound) >= 0));
    }),
    { numRuns: 200 },
  );
});
