// Large crowds of Python and Node on one lock and one box, with many kills.
import { describe, expect, test } from "vitest";
import { handOverTogether, holdTogether } from "./mixed-crowd.ts";
import { pythonIsMissing, pythonSuite } from "./python.ts";

describe.skipIf(pythonIsMissing)(pythonSuite("many processes of Python and Node, many of them killed"), () => {
  test("hold one lock one at a time", async () => {
    const { python, node } = await holdTogether({ processes: 4, rounds: 150, kills: 20 });
    expect(Math.min(python, node)).toBeGreaterThan(300);
  });

  test("lose no ticket, commit each key once, and both take part", async () => {
    const { python, node } = await handOverTogether({ processes: 3, keys: 300, kills: 20 });
    expect(Math.min(python, node)).toBeGreaterThan(0);
  });
});
