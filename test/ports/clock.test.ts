import { describe, expect, it } from "vitest";
import { nodeClock } from "../../src/ports/node/clock.ts";

describe("the real clock", () => {
  it("never ends a sleep early", async () => {
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const ms = 1 + i * 0.37;
        const before = nodeClock.monotonicMs();
        // Time passes: that is what it is for.
        await nodeClock.sleep(ms);
        expect(nodeClock.monotonicMs() - before).toBeGreaterThanOrEqual(ms);
      }),
    );
  });

  it("never goes back", () => {
    let last = nodeClock.monotonicMs();
    for (let i = 0; i < 10_000; i++) {
      const now = nodeClock.monotonicMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  it("tells the same wall time as the platform", () => {
    expect(Math.abs(nodeClock.wallMs() - Date.now())).toBeLessThan(1000);
  });

  it("rejects a sleep with the signal's reason, at once and also later", async () => {
    const reason = Object.assign(new Error("enough"), { code: "EPERM" });
    await expect(nodeClock.sleep(60_000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const sleeping = nodeClock.sleep(60_000, { signal: controller.signal });
    setImmediate(() => controller.abort(reason));
    await expect(sleeping).rejects.toBe(reason);
  });

  it("sleeps longer than one timer can, and not at all for nothing", async () => {
    const controller = new AbortController();
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    let over = false;
    const sleeping = nodeClock.sleep(Infinity, { signal: controller.signal }).finally(() => (over = true));
    // Time passes: in which it could wake up.
    await nodeClock.sleep(50);
    process.off("warning", warn);
    expect(over).toBe(false);
    // A delay that does not fit is cut to one millisecond, with this warning: the sleep would burn
    // a core.
    expect(warnings).toEqual([]);
    controller.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    await nodeClock.sleep(0);
    await nodeClock.sleep(-5);
  });

  it("lets other callbacks run when it sleeps for 0 ms: a read of a second kept every timer waiting", async () => {
    let rung = false;
    // Time passes: this is the timer that must have its turn.
    setTimeout(() => (rung = true), 1);
    const untilMs = nodeClock.monotonicMs() + 5;
    while (nodeClock.monotonicMs() < untilMs);
    await nodeClock.sleep(0);
    await nodeClock.sleep(0);
    expect(rung).toBe(true);
  });

  it("rings an alarm once, never early, and not when it was stopped", async () => {
    const before = nodeClock.monotonicMs();
    let stopped = 0;
    const stop = nodeClock.alarm(1, () => stopped++);
    const rungMs = new Promise<number>((resolve) => nodeClock.alarm(20.5, () => resolve(nodeClock.monotonicMs())));
    stop();
    expect((await rungMs) - before).toBeGreaterThanOrEqual(20.5);
    expect(stopped).toBe(0);
  });

  it("keeps the process alive only when the sleep is not in the background", async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const controller = new AbortController();
    const before = timers();
    const background = nodeClock.sleep(60_000, { signal: controller.signal, background: true });
    expect(timers()).toBe(before);
    const foreground = nodeClock.sleep(60_000, { signal: controller.signal });
    expect(timers()).toBe(before + 1);
    controller.abort();
    await Promise.allSettled([background, foreground]);
    expect(timers()).toBe(before);
  });
});
