// Real processes on one folder, killed and stopped at any moment; and the proof that the audit would notice.
import { describe, expect, test } from "vitest";
import { canStop } from "../../src/testing/processes/child.ts";
import { torture } from "../../src/testing/torture.ts";

const processes = 8;

describe("a rolling chain", () => {
  test("loses no append and gives out no number twice, whoever is killed or stopped", async () => {
    const result = await torture({ part: "chain", seconds: 20, processes, seed: 1 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(100);
    // Old epochs were collected all the time, or the test shows nothing.
    expect(result.epochs).toBeGreaterThan(10);
    expect(result.kills).toBeGreaterThan(10);
    if (!canStop) return;
    expect(result.stops).toBeGreaterThan(50);
    expect(result.livesOver).toBeGreaterThan(0);
  });

  test("that believes a link without a second look is found out", async () => {
    const result = await torture({ part: "chain", seconds: 30, processes, seed: 2, sabotage: true });
    expect(result.violations.join("\n")).toMatch(/won twice|is lost/);
  });
});

describe("a gate", () => {
  test("lets no update be lost, though its holders are killed inside", async () => {
    const result = await torture({ part: "gate", seconds: 8, processes, seed: 3 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(20);
    expect(result.kills).toBeGreaterThan(5);
    expect(result.killsInside).toBeGreaterThan(0);
    if (canStop) expect(result.stops).toBeGreaterThan(20);
  });

  test("that is left out is missed at once", async () => {
    const result = await torture({ part: "gate", seconds: 8, processes, seed: 4, sabotage: true });
    expect(result.violations.join("\n")).toMatch(/won twice|is lost/);
  });
});

describe("path locks", () => {
  test("keep conflicting holders apart on a nested tree, whoever is killed, stopped or broken", async () => {
    const result = await torture({ part: "locks", seconds: 20, processes, seed: 5 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(20);
    expect(result.kills).toBeGreaterThan(10);
    // The table rolled meanwhile.
    expect(result.epochs).toBeGreaterThan(2);
    if (canStop) expect(result.livesOver).toBeGreaterThan(0);
  });
});

describe("a counter under a lock with redo", () => {
  test("loses no acknowledged update, though living holders lose their lease all the time", async () => {
    const result = await torture({ part: "redo", seconds: 20, processes, seed: 6 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(20);
    if (canStop) expect(result.livesOver).toBeGreaterThan(10);
  });

  test.skipIf(!canStop)("that is checked and then renamed is found out", async () => {
    const result = await torture({ part: "redo", seconds: 40, processes, seed: 7, sabotage: true });
    expect(result.violations.join("\n")).toMatch(/acknowledged twice|won twice|is lost/);
  });
});

describe("an event log", () => {
  test.each([
    ["for one machine", 8],
    ["between machines", 9],
  ])(
    "%s loses no acknowledged event, leaves no gap and tears no batch, whoever is killed or stopped",
    async (_mode, seed) => {
      const result = await torture({ part: "events", seconds: 10, processes, seed });
      expect(result.violations).toEqual([]);
      expect(result.appends).toBeGreaterThan(20);
      expect(result.kills).toBeGreaterThan(5);
      expect(result.killsInside).toBeGreaterThan(0);
      if (canStop) expect(result.stops).toBeGreaterThan(20);
    },
  );

  test("whose lock excludes only those of its own process is found out", async () => {
    const result = await torture({ part: "events", seconds: 10, processes, seed: 10, sabotage: true });
    // By the audit; or before it by the log itself, which refuses what somebody else has written without the gate: after that nobody goes on, and there may be nothing left to audit.
    expect(result.violations.join("\n")).toMatch(
      /won twice|is lost|refused for no reason|cannot be read|code: 'CORRUPT'/,
    );
  });
});
