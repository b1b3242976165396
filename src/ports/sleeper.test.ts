import { expect, test } from "vitest";
import { Sleeper } from "./sleeper.ts";

const pauseMs = 10;

/** Alarms ring when the test says so. */
function standingClock() {
  const alarms = new Set<() => void>();
  const alarm = (_ms: number, ring: () => void) => {
    alarms.add(ring);
    return () => void alarms.delete(ring);
  };
  return { alarms, sleeper: new Sleeper({ alarm }) };
}

test("a sleep ends after its time", async () => {
  const { alarms, sleeper } = standingClock();
  const sleeping = sleeper.sleep(pauseMs);
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("a wake-up ends a sleep and leaves no alarm behind", async () => {
  const { alarms, sleeper } = standingClock();
  const sleeping = sleeper.sleep(pauseMs);
  sleeper.wake();
  expect(await sleeping).toBe("woken");
  expect(alarms.size).toBe(0);
});

test("a wake-up before a sleep ends that sleep and no other", async () => {
  const { alarms, sleeper } = standingClock();
  sleeper.wake();
  expect(await sleeper.sleep(pauseMs)).toBe("woken");
  const sleeping = sleeper.sleep(pauseMs);
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("a wake-up that was forgotten ends no sleep", async () => {
  const { alarms, sleeper } = standingClock();
  sleeper.wake();
  sleeper.forgetWakeUps();
  const sleeping = sleeper.sleep(pauseMs);
  for (const ring of alarms) ring();
  expect(await sleeping).toBe("slept");
});

test("an aborted sleep rejects with the signal's reason and leaves no alarm behind", async () => {
  const { alarms, sleeper } = standingClock();
  const cancel = new AbortController();
  const sleeping = sleeper.sleep(pauseMs, cancel.signal);
  cancel.abort("enough");
  await expect(sleeping).rejects.toBe("enough");
  await expect(sleeper.sleep(pauseMs, cancel.signal)).rejects.toBe("enough");
  expect(alarms.size).toBe(0);
});
