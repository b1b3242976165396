// Real processes on one folder, killed and stopped at any moment, each part by itself; and the proof that the audit would notice.
import { describe, expect, test } from "vitest";
import { canStop } from "../../src/testing/processes/child.ts";
import {
  torture,
  type TortureFigures,
  type TortureOptions,
  type TortureResult,
} from "../../src/testing/torture/torture.ts";

const processes = 8;
/** It lasts until enough has happened, and each wait in it has its own limit. */
const timeout = 900_000;

interface Holding extends Pick<TortureOptions, "part" | "seconds" | "seed"> {
  readonly atLeast: Partial<TortureFigures>;
}

/** Goes on until as much has happened as the test is to show. */
async function mustHold({ atLeast, ...options }: Holding): Promise<TortureResult> {
  const { stops = 0, livesOver = 0, ...others } = atLeast;
  const least = { ...others, ...(canStop ? { stops, livesOver } : {}) };
  const result = await torture({ ...options, processes, atLeast: least });
  expect(result.violations).toEqual([]);
  for (const [name, figure] of Object.entries(least))
    expect([name, result[name as keyof TortureFigures]]).toSatisfy(([, happened]) => happened >= figure);
  return result;
}

/** Ends at the first violation; the time is what it may take at most. */
async function findOut(part: string, seed: number): Promise<string> {
  const { violations } = await torture({ part, seconds: 300, processes, seed, sabotage: true });
  return violations.join("\n");
}

const lost = /won twice|is lost|won number \d+ after|acknowledged twice/;

describe("a rolling chain", () => {
  test("loses no append and gives out no number twice, whoever is killed or stopped", { timeout }, async () => {
    const { epochs } = await mustHold({
      part: "chain",
      seconds: 20,
      seed: 1,
      atLeast: { appends: 200, kills: 10, stops: 50, livesOver: 1 },
    });
    // Old epochs were collected all the time, or the test shows nothing.
    expect(epochs).toBeGreaterThan(10);
  });

  test("that believes a link without a second look is found out", { timeout }, async () => {
    expect(await findOut("chain", 2)).toMatch(lost);
  });
});

describe("a gate", () => {
  test("lets no update be lost, though its holders are killed inside", { timeout }, async () => {
    await mustHold({
      part: "gate",
      seconds: 8,
      seed: 3,
      atLeast: { appends: 20, kills: 5, killsInside: 1, stops: 20 },
    });
  });

  test("that is left out is missed at once", { timeout }, async () => {
    expect(await findOut("gate", 4)).toMatch(lost);
  });
});

describe("a semaphore", () => {
  test("lets no update be lost, though its holders are killed inside", { timeout }, async () => {
    await mustHold({ part: "semaphore", seconds: 8, seed: 11, atLeast: { appends: 20, kills: 5, killsInside: 1 } });
  });
});

describe("path locks", () => {
  test("keep conflicting holders apart on a nested tree, whoever is killed or broken", { timeout }, async () => {
    const { epochs } = await mustHold({
      part: "locks",
      seconds: 20,
      seed: 5,
      atLeast: { appends: 100, kills: 10, livesOver: 1 },
    });
    // The table rolled meanwhile.
    expect(epochs).toBeGreaterThan(2);
  });
});

describe("a counter under a lock with redo", () => {
  test("loses no acknowledged update, though living holders lose their lease all the time", { timeout }, async () => {
    await mustHold({ part: "redo", seconds: 20, seed: 6, atLeast: { appends: 20, livesOver: 10 } });
  });

  test.skipIf(!canStop)("that is checked and then renamed is found out", { timeout }, async () => {
    expect(await findOut("redo", 7)).toMatch(lost);
  });
});

describe("an event log", () => {
  test.each([
    ["for one machine", 8],
    ["between machines", 9],
  ])("%s loses no acknowledged event, leaves no gap and tears no batch", { timeout }, async (_mode, seed) => {
    await mustHold({
      part: "events",
      seconds: 10,
      seed,
      atLeast: { appends: 20, kills: 5, killsInside: 1, stops: 20 },
    });
  });

  test("whose lock excludes only those of its own process is found out", { timeout }, async () => {
    // By the ledger; or before it by the log itself, which refuses what was written without the gate.
    expect(await findOut("events", 10)).toMatch(
      /won twice|is lost|won number|refused for no reason|cannot be read|code: 'CORRUPT'/,
    );
  });
});
