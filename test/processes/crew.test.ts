// The process runner itself: what it hears, what it does to its children, and that none outlives
// it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { compiledModule } from "../../harness/processes/compiled-module.ts";
import { Chance } from "../../harness/processes/chance.ts";
import { Chaos } from "../../harness/processes/chaos.ts";
import { canStop } from "../../harness/processes/child.ts";
import { Crew } from "../../harness/processes/crew.ts";
import { makeScratch } from "../sites/scratch.ts";

interface Said {
  readonly pid: number;
  readonly tick: number;
}

const patience = { timeout: 20_000, interval: 5 };

/** Counts aloud; finishes when it is told to. */
const counting = `
let tick = 0;
const finish = finishSignal();
while (!finish.aborted) {
  report({ pid: process.pid, tick: ++tick });
  // Time passes: so that it does not fill the pipe.
  await new Promise((resolve) => setTimeout(resolve, 2));
}
process.exit(0);
`;

function newCrew(names: readonly string[], body: string = counting): Crew<Said> {
  const childSide = new URL("../../harness/processes/child-side.ts", import.meta.url);
  const module = join(makeScratch(), "child.mjs");
  const from = JSON.stringify(pathToFileURL(compiledModule(childSide)).href);
  writeFileSync(module, `import { finishSignal, report } from ${from};\n${body}`);
  return new Crew<Said>({ names, module, argsOf: () => [] });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function pidsOf(crew: Crew<Said>): number[] {
  return [...new Set(crew.history.map(({ report }) => report.pid))];
}

describe("a crew", () => {
  test("hears everything that its children said, in their order, and ends them when it is done", async () => {
    const crew = newCrew(["ada", "bob"]);
    await crew.run(async () => {
      await vi.waitFor(() => expect(new Set(crew.history.map(({ from }) => from)).size).toBe(2), patience);
      expect(await crew.finish()).toEqual([]);
    });
    for (const name of ["ada", "bob"]) {
      const ticks = crew.history.filter(({ from }) => from === name).map(({ report }) => report.tick);
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
    }
    expect(crew.endings.map(({ code, wanted }) => ({ code, wanted }))).toEqual([
      { code: 0, wanted: true },
      { code: 0, wanted: true },
    ]);
    expect(pidsOf(crew).filter(isAlive)).toEqual([]);
  });

  test("starts a killed child again, as another process under the same name", async () => {
    const crew = newCrew(["ada"]);
    await crew.run(async () => {
      const [ada] = crew.children;
      await vi.waitFor(() => expect(crew.history.length).toBeGreaterThan(0), patience);
      await ada?.kill();
      expect(crew.endings).toMatchObject([{ child: "ada", start: 1, signal: "SIGKILL", wanted: true }]);
      ada?.start();
      await vi.waitFor(() => expect(crew.history.at(-1)?.start).toBe(2), patience);
    });
    expect(pidsOf(crew)).toHaveLength(2);
  });

  test("reports a child that failed, with what it said last", async () => {
    const crew = newCrew(["ada"], `throw new Error("no more tickets");`);
    await crew.run(() => vi.waitFor(() => expect(crew.failures).toHaveLength(1), patience));
    expect(crew.failures).toMatchObject([{ child: "ada", code: 1, wanted: false }]);
    expect(crew.failures[0]?.stderr).toContain("no more tickets");
  });

  test("takes a line that is no report for a failure", async () => {
    const finishing = `finishSignal().addEventListener("abort", () => process.exit(0)); setInterval(() => {}, 1000);`;
    const crew = newCrew(["ada"], `console.log("hello"); report({}); ${finishing}`);
    await crew.run(async () => {
      await vi.waitFor(() => expect(crew.history).toHaveLength(1), patience);
      expect(await crew.finish()).toEqual([]);
    });
    expect(crew.failures).toMatchObject([{ code: 0, wanted: false }]);
    expect(crew.failures[0]?.stderr).toContain("hello");
  });

  test("kills a child that does not finish in time, and says so", async () => {
    const crew = newCrew(["ada"], `report({}); setInterval(() => {}, 1000);`);
    await crew.run(async () => {
      await vi.waitFor(() => expect(crew.history).toHaveLength(1), patience);
      expect(await crew.children[0]?.finish(50)).toBe(false);
    });
  });

  test.runIf(canStop)("leaves no child behind when its work fails, not even a stopped one", async () => {
    const crew = newCrew(["ada", "bob"]);
    const work = crew.run(async () => {
      await vi.waitFor(() => expect(pidsOf(crew)).toHaveLength(2), patience);
      for (const child of crew.children) child.stop();
      throw new Error("the work failed");
    });
    await expect(work).rejects.toThrow("the work failed");
    expect(pidsOf(crew).filter(isAlive)).toEqual([]);
  });

  test.runIf(canStop)("stops a child in the middle of what it does, and lets it go on from there", async () => {
    const crew = newCrew(["ada", "bob"]);
    const saidBy = (name: string): number => crew.history.filter(({ from }) => from === name).length;
    const bobGoesOn = async (): Promise<void> => {
      const before = saidBy("bob");
      await vi.waitFor(() => expect(saidBy("bob")).toBeGreaterThan(before + 30), patience);
    };
    await crew.run(async () => {
      const [ada] = crew.children;
      await vi.waitFor(() => expect(saidBy("ada")).toBeGreaterThan(3), patience);
      ada?.stop();
      // What she had said before has arrived by then.
      await bobGoesOn();
      const before = saidBy("ada");
      await bobGoesOn();
      expect(saidBy("ada")).toBe(before);
      ada?.cont();
      await vi.waitFor(() => expect(saidBy("ada")).toBeGreaterThan(before), patience);
    });
    expect(pidsOf(crew)).toHaveLength(2);
  });
});

describe("chaos", () => {
  test("kills and stops, and leaves all children running", async () => {
    const crew = newCrew(["ada", "bob", "cleo"]);
    const chaos = new Chaos(crew.children, {
      chance: new Chance(1),
      everyMsMax: 40,
      killPart: 0.3,
      stopMs: [[10, 60]],
    });
    await crew.run(async () => {
      await vi.waitFor(() => expect(pidsOf(crew)).toHaveLength(3), patience);
      chaos.begin();
      await vi.waitFor(() => expect(chaos.kills).toBeGreaterThan(2), patience);
      if (canStop) await vi.waitFor(() => expect(chaos.stops).toBeGreaterThan(5), patience);
      await chaos.end();
      const heard = crew.history.length;
      await vi.waitFor(() => expect(new Set(crew.history.slice(heard).map(({ from }) => from)).size).toBe(3), patience);
    });
    expect(crew.failures).toEqual([]);
    expect(pidsOf(crew).filter(isAlive)).toEqual([]);
  });

  test("makes the same choices from the same seed", () => {
    const draw = (seed: number): number[] => {
      const chance = new Chance(seed);
      return Array.from({ length: 5 }, () => chance.fraction());
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });
});
