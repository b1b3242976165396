import { expect, test } from "vitest";
import { Rate } from "./rate.ts";

test("a rate is the growth of the last half minute, and older values do not count", () => {
  const rate = new Rate();
  expect(rate.add(100, 0)).toBeUndefined();
  expect(rate.add(120, 2000)).toBe(10);
  for (let second = 4; second <= 60; second += 2) rate.add(120, second * 1000);
  expect(rate.add(120, 62_000)).toBe(0);
});

test("a counter that is looked at once a minute has a rate too", () => {
  const rate = new Rate();
  rate.add(0, 0);
  expect(rate.add(60, 60_000)).toBe(1);
  expect(rate.add(180, 120_000)).toBe(2);
});

test("a log that became shorter, because it was restored, begins anew", () => {
  const rate = new Rate();
  rate.add(1000, 0);
  expect(rate.add(10, 2000)).toBeUndefined();
  expect(rate.add(20, 4000)).toBe(5);
});
