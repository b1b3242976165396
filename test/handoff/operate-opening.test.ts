// Opening a box: options that are wrong are named before anything is made, and openings of one process get along.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

describe("openHandoff", () => {
  it.each<[options: object, error: RegExp]>([
    [{ lease: 5 }, /openHandoff: there is no option "lease"/],
    [{ leaseMs: 0 }, /leaseMs must be a number from 1/],
    [{ durability: "some" }, /durability is "fsync" or "none", not some/],
    [{ limits: { ticket: 1 } }, /limits: there is no option "ticket"/],
    [{ limits: { tickets: 0.5 } }, /limits.tickets must be a whole number from 1, not 0.5/],
    [{ limits: { inFlight: 0 } }, /limits.inFlight must be a whole number from 1/],
    [{ retention: { archive: 1 } }, /retention: there is no option "archive"/],
    [{ retention: { errorMs: -1 } }, /retention.errorMs must be a number of milliseconds from 0, not -1/],
  ])("refuses %o, and makes nothing", async (options, error) => {
    const directory = join(makeScratch(), "box");
    await expect(openHandoff(directory, options)).rejects.toThrow(error);
    expect(existsSync(directory)).toBe(false);
  });

  it('openHandoff("memory:") opens a new box each time', async () => {
    await using first = await openHandoff("memory:");
    await using second = await openHandoff("memory:");
    await first.publish({ a: "1" });
    expect(await second.take()).toBeUndefined();
    const delivery = await first.take();
    expect(await delivery?.text("a")).toBe("1");
    await delivery?.ack();
  });
});

describe("a store", () => {
  it("has boxes on its own ground, also when a box is opened by its directory", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    const box = await store.handoff("invoices");
    const { id } = await box.publish({ a: "1" });
    await using alone = await openHandoff(join(directory, "handoff", "invoices"));
    const delivery = await alone.take();
    expect(delivery?.id).toBe(id);
    expect(await box.find(id)).toMatchObject({ state: "processing", holder: { state: "alive" } });
    expect(await store.holders()).toHaveLength(2);
    await delivery?.ack();
    await expect(store.handoff("x", { leaseMs: 5 } as object)).rejects.toThrow(/handoff: there is no option "leaseMs"/);
    await expect(store.handoff("none", { create: false })).rejects.toMatchObject({ code: "NOT_A_STORE" });
  });

  it("gives a ticket to one of two openings, and closing one takes nothing from the other", async () => {
    await using store = await openStore(makeScratch());
    const [one, other] = [await store.handoff("b"), await store.handoff("b", { limits: { inFlight: 9 } })];
    expect(one).not.toBe(other);
    const { id } = await one.publish({ a: "1" });
    const taken = (await Promise.all([one.take(), other.take(), one.take(), other.take()])).filter(
      (delivery) => delivery !== undefined,
    );
    expect(taken.map((delivery) => delivery.id)).toEqual([id]);
    await other.close();
    await store.handoff("b", { limits: { inFlight: 8 } });
    expect(await one.find(id)).toMatchObject({ state: "processing", attempt: 1 });
    await taken[0]?.ack("done");
    expect(await one.find(id)).toMatchObject({ state: "archive", result: "done" });
    await one.close();
    const again = await store.handoff("b");
    await again.publish({ a: "2" });
    const next = await again.take();
    expect(next?.attempt).toBe(1);
    await next?.ack();
  });

  it("is not created in the directory of a box", async () => {
    const directory = makeScratch();
    await (await openHandoff(directory)).close();
    await expect(openStore(directory)).rejects.toMatchObject({ code: "INVALID_PATH" });
  });
});
