import { describe, expect, it } from "vitest";
import { withSharingRetry } from "../../src/ports/node/windows/sharing-violation.ts";

/** An operation that fails the given number of times, and the waits that it was given. */
function flaky(
  code: string,
  failures: number,
): { action: () => void; calls: () => number; waits: number[]; wait: (ms: number) => Promise<void> } {
  let calls = 0;
  const waits: number[] = [];
  return {
    action: () => {
      if (calls++ < failures) throw Object.assign(new Error(code), { code });
    },
    calls: () => calls,
    waits,
    wait: async (ms) => void waits.push(ms),
  };
}

describe("a sharing violation", () => {
  it.each(["EPERM", "EBUSY", "EACCES"])("%s is waited out on Windows", async (code) => {
    const { action, calls, waits, wait } = flaky(code, 3);
    await withSharingRetry("win32", action, wait);
    expect(calls()).toBe(4);
    expect(waits).toEqual([10, 20, 40]);
  });

  it("is reported on Windows after ten tries in about a second", async () => {
    const { action, calls, waits, wait } = flaky("EBUSY", 100);
    await expect(withSharingRetry("win32", action, wait)).rejects.toMatchObject({ code: "EBUSY" });
    expect(calls()).toBe(10);
    expect(waits.reduce((sum, ms) => sum + ms)).toBeLessThanOrEqual(1000);
  });

  it("is final everywhere else, where these errors mean what they say", async () => {
    for (const platform of ["linux", "darwin"] as const) {
      const { action, calls, wait } = flaky("EPERM", 1);
      await expect(withSharingRetry(platform, action, wait)).rejects.toMatchObject({ code: "EPERM" });
      expect(calls()).toBe(1);
    }
  });

  it("is not what any other error is taken for", async () => {
    const { action, calls, wait } = flaky("ENOENT", 1);
    await expect(withSharingRetry("win32", action, wait)).rejects.toMatchObject({ code: "ENOENT" });
    expect(calls()).toBe(1);
  });
});
