// Python and Node on one lock and one box, with kills: short crowds. The large ones are in mixed-crowd.deep.ts.
import { describe, expect, test } from "vitest";
import { handOverTogether, holdTogether } from "./mixed-crowd.ts";
import { pythonIsMissing, pythonSuite } from "./python.ts";

describe.skipIf(pythonIsMissing)(pythonSuite("processes of Python and Node, some of them killed"), () => {
  test("hold one lock one at a time", async () => {
    const { python, node } = await holdTogether({ processes: 2, rounds: 30, kills: 2 });
    expect(Math.min(python, node)).toBeGreaterThan(30);
  });

  test("lose no ticket, and commit each key once", async () => {
    const { python, node } = await handOverTogether({ processes: 1, keys: 30, kills: 2 });
    expect(python + node).toBe(30);
  });
});
