import { expect, test } from "vitest";
import { Sleeper } from "./sleeper.ts";

/** Alarms ring when the test rings them. */
function standingClock() {
  const alarms = new Set<() => void>();
  const alarm = (_ms: number, ring: () => void) => {
    alarms.add(ring);
    return () => void alarms.delete(ring);
  };
  const sleeper = new Sleeper({ alarm });
  const sleep = (signal?: AbortSignal) => sleeper.sleep(10, signal);
  return { alarms, sleeper, sleep };
}

test("a sleep ends after its time", async () => {
  const { alarms, sleep } = standingClock();
  const sleeping = sleep();
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("a wake-up ends a sleep and leaves no alarm behind", async () => {
  const { alarms, sleeper, sleep } = standingClock();
  const sleeping = sleep();
  sleeper.wake();
  expect(await sleeping).toBe("woken");
  expect(alarms.size).toBe(0);
});

test("a wake-up before a sleep ends that sleep and no other", async () => {
  const { alarms, sleeper, sleep } = standingClock();
  sleeper.wake();
  expect(await sleep()).toBe("woken");
  const sleeping = sleep();
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("a wake-up that was forgotten ends no sleep", async () => {
  const { alarms, sleeper, sleep } = standingClock();
  sleeper.wake();
  sleeper.forgetWakeUps();
  const sleeping = sleep();
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("an aborted sleep rejects with the signal's reason and leaves no alarm behind", async () => {
  const { alarms, sleep } = standingClock();
  const cancel = new AbortController();
  const sleeping = sleep(cancel.signal);
  cancel.abort("enough");
  await expect(sleeping).rejects.toBe("enough");
  await expect(sleep(cancel.signal)).rejects.toBe("enough");
  expect(alarms.size).toBe(0);
});
