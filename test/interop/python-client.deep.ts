// The tests that the Python client has of its own. Kills at every fifth call to the disk take their time.
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { client, pythonIsMissing, pythonSuite } from "./python.ts";

describe.skipIf(pythonIsMissing)(pythonSuite("the Python client"), () => {
  test("passes its own tests", () => {
    const { status, stderr } = spawnSync("python3", ["-W", "error", "-m", "unittest"], {
      cwd: client,
      encoding: "utf8",
    });
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringMatching(/\nRan \d\d+ tests[^]*\nOK/) });
  });
});
