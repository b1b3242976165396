// A lifetime: what was opened refuses calls once its close has begun, and waits for those in progress.
import { expect, it } from "vitest";
import { Lifetime } from "../../src/durable/wait/lifetime.ts";

it("a close waits for the calls in progress, and refuses later ones with CLOSED", async () => {
  const life = new Lifetime("/shop");
  const steps: string[] = [];
  let finish = (): void => undefined;
  const call = life.run(async () => {
    await new Promise<void>((resolve) => (finish = resolve));
    steps.push("call ended");
    return 7;
  });
  const failing = life.run(async () => {
    throw new Error("disk full");
  });
  const closing = life.close(async () => void steps.push("released"));

  expect(life.closed.reason).toMatchObject({ code: "CLOSED" });
  expect(() => life.mustBeOpen()).toThrow("/shop was closed.");
  await expect(life.run(async () => steps.push("late"))).rejects.toMatchObject({ code: "CLOSED" });
  await expect(failing).rejects.toThrow("disk full");
  finish();
  await closing;
  expect(await call).toBe(7);
  expect(steps).toEqual(["call ended", "released"]);
});

it("a second close waits for the first, and releases nothing twice", async () => {
  const life = new Lifetime("/shop");
  let releases = 0;
  const release = async (): Promise<void> => {
    releases++;
    await Promise.resolve();
    throw new Error("the ground is gone");
  };
  const first = life.close(release);
  await expect(life.close(release)).rejects.toThrow("the ground is gone");
  await expect(first).rejects.toThrow("the ground is gone");
  expect(releases).toBe(1);
});
