// Consumers: how many tickets they take, in which order, and how each one ends.
import { describe, expect, it } from "vitest";
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import { findProgress } from "../../../src/handoff/consume/progress.ts";
import type { DeadLetter } from "../../../src/handoff/model/handoff.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import type { ConsumeOptions } from "../../../src/handoff/model/consume-options.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { boxSites, boxSiteOn, openBoxOn, openOn, statesOf } from "./boxes.ts";

const soon: ConsumeOptions = { backoffMs: { min: 1, max: 1 } };

describe.each(boxSites)("on %s", (_site, make) => {
  it("a delivery that is disposed of unsettled returns to the queue, and the attempt does not count", async () => {
    const { site, directory, open } = await make();
    const handoff = await open();
    const { id } = await handoff.publish({ "a.txt": "one" });
    {
      await using delivery = await handoff.take();
      expect(delivery?.attempt).toBe(1);
    }
    const again = await handoff.take();
    expect(again).toMatchObject({ id, attempt: 1 });
    await again!.ack();
    await expect(again!.ack()).rejects.toThrow(TypeError);
    expect(Object.keys(await statesOf((await site.openPorts()).disk, directory))).toEqual(["archive"]);
  });

  it("take reports each ticket that it moved to the dead letters", async () => {
    const { open } = await make();
    const handoff = await open();
    const { id: late } = await handoff.publish({ "a.txt": "late" }, { priority: 0, expiresMs: 0 });
    const { id } = await handoff.publish({ "a.txt": "one" });
    const dead: DeadLetter[] = [];
    const delivery = await handoff.take({ onDeadLetter: (ticket) => dead.push(ticket) });
    expect(delivery?.id).toBe(id);
    expect(dead).toMatchObject([{ id: late, outcome: "expired" }]);
    await delivery!.fail("it is empty");
    expect(dead[1]).toEqual({ id, attempt: 1, outcome: "fail", reason: "it is empty" });
  });

  it("progress that JSON cannot represent is refused, and nothing of it is written", async () => {
    const { open } = await make();
    const handoff = await open();
    const { id } = await handoff.publish({ "a.txt": "one" });
    const delivery = (await handoff.take())!;
    for (const note of [Number.NaN, 1n, new Map([["a", 1]]), undefined, [undefined]])
      expect(await failureOf(delivery.progress(note))).toBeInstanceOf(TypeError);
    expect((await handoff.find(id))?.progress).toBeUndefined();
    await delivery.progress({ done: 1 });
    expect((await handoff.find(id))?.progress).toEqual({ done: 1 });
    await delivery.ack();
  });

  it("close returns the claimed tickets, and the attempt does not count", async () => {
    const { open } = await make();
    const [first, second] = [await open(), await open()];
    const { id } = await first.publish({ "a.txt": "one" });
    const delivery = (await first.take())!;
    await first.close();
    expect(delivery.signal.aborted).toBe(true);
    expect(await failureOf(delivery.ack())).toMatchObject({ code: "CLAIM_LOST", id });
    const again = await second.take({ waitMs: 20_000 });
    expect(again).toMatchObject({ id, attempt: 1 });
    await again!.ack();
  });

  it("a handler that takes too long is aborted and retried, and can no longer settle", async () => {
    const { open } = await make();
    const handoff = await open();
    await handoff.publish({ "a.txt": "one" });
    const seen: Delivery[] = [];
    const consumer = handoff.consume(
      async (delivery) => {
        seen.push(delivery);
        if (delivery.attempt === 1) await new Promise(() => undefined);
      },
      { ...soon, handlerTimeoutMs: 50 },
    );
    await until(() => seen.length === 2);
    await consumer.stop();
    expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(seen[0]!.signal.reason).toMatchObject({ code: "CLAIM_LOST" });
    for (const settle of [seen[0]!.ack(), seen[0]!.output("b.txt", "late"), seen[0]!.progress("late")])
      expect(await failureOf(settle)).toMatchObject({ code: "CLAIM_LOST" });
  });

  it("a result that cannot be recorded is the handler's error, and stops no consumer", async () => {
    const { site, directory, open } = await make();
    const handoff = await open();
    await handoff.publish({ "a.txt": "one" }, { key: "bad" });
    await handoff.publish({ "a.txt": "two" }, { key: "good" });
    const consumer = handoff.consume(async ({ key }) => (key === "bad" ? 1n : "fine"), { ...soon, attempts: 2 });
    const { disk } = await site.openPorts();
    await until(async () => {
      const { archive = [], error = [] } = await statesOf(disk, directory);
      return archive.length === 1 && error.length === 1;
    });
    await consumer.stop();
    await consumer.done;
  });

  it("a consumer runs at most `concurrency` handlers, and takes no more before one of them is done", async () => {
    const { site, directory, open } = await make();
    const handoff = await open();
    for (let number = 0; number < 8; number++) await handoff.publish({ "a.txt": `${number}` });
    let [running, most, done] = [0, 0, 0];
    const release: (() => void)[] = [];
    const consumer = handoff.consume(
      async () => {
        running++;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => release.push(resolve));
        running--;
        done++;
      },
      { concurrency: 3 },
    );
    await until(() => running === 3);
    const { disk } = await site.openPorts();
    expect((await statesOf(disk, directory)).processing).toHaveLength(3);
    for (let number = 0; number < 8; number++) {
      await until(() => release.length > 0);
      release.shift()?.();
    }
    await until(() => done === 8);
    await consumer.stop();
    expect(most).toBe(3);
    expect(await statesOf(disk, directory)).toEqual({ archive: expect.objectContaining({ length: 8 }) });
  });

  it("stop waits for tickets in progress, and returns them when the time to drain is over", async () => {
    const { open } = await make();
    const handoff = await open();
    const { id } = await handoff.publish({ "a.txt": "one" });
    let delivery: Delivery | undefined;
    const consumer = handoff.consume(async (given) => {
      delivery = given;
      await new Promise(() => undefined);
    });
    await until(() => delivery !== undefined);
    await consumer.stop({ drainMs: 20 });
    expect(await failureOf(delivery!.ack())).toMatchObject({ code: "CLAIM_LOST" });
    const again = await handoff.take();
    expect(again).toMatchObject({ id, attempt: 1 });
    await again!.ack();
  });

  it("others see the last progress of a ticket while it is claimed, and it disappears with the claim", async () => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const handoff = await open();
    await handoff.publish({ "a.txt": "one" });
    const delivery = (await handoff.take())!;
    for (let percent = 1; percent <= 50; percent++) await delivery.progress({ percent });
    const [name] = (await statesOf(box.disk, directory)).processing!;
    const ticket = findTicketName(name!)!;
    await until(async () => ((await findProgress(box, ticket)) as { percent: number }).percent === 50);
    await delivery.ack();
    expect(await findProgress(box, ticket)).toBeUndefined();
  });

  it("consumers of two processes work on each group in order, and on other groups meanwhile", async () => {
    const { open } = await make();
    const [ada, bob] = [await open(), await open()];
    const groups = ["red", "green"];
    for (let number = 0; number < 4; number++)
      for (const group of groups) await ada.publish({ "a.txt": `${number}` }, { group, key: `${group} ${number}` });
    const seen: string[] = [];
    const failed = new Set<string>();
    const handler = async ({ key }: Delivery): Promise<void> => {
      // One is tried again: those behind it wait.
      if (key === "red 1" && !failed.has(key)) {
        failed.add(key);
        throw new Error("not now");
      }
      seen.push(key);
    };
    const consumers = [ada, bob].map((handoff) => handoff.consume(handler, { ...soon, concurrency: 2 }));
    await until(() => seen.length === 8);
    for (const consumer of consumers) await consumer.stop();
    for (const group of groups)
      expect(seen.filter((key) => key.startsWith(group))).toEqual([0, 1, 2, 3].map((number) => `${group} ${number}`));
  });

  it("a limit in flight holds for all processes together", async () => {
    const { open } = await make();
    const limits = { inFlight: 2 };
    const [ada, bob] = [await open({ limits }), await open({ limits })];
    for (let number = 0; number < 8; number++) await ada.publish({ "a.txt": `${number}` });
    let [running, most, done] = [0, 0, 0];
    const handler = async (): Promise<void> => {
      running++;
      most = Math.max(most, running);
      await until(() => running === 2 || done >= 7);
      running--;
      done++;
    };
    const consumers = [ada, bob].map((handoff) => handoff.consume(handler, { concurrency: 3 }));
    await until(() => done === 8);
    for (const consumer of consumers) await consumer.stop();
    expect(most).toBe(2);
  });

  it.each([
    [{ concurrency: 0 }, RangeError],
    [{ attempts: 1.5 }, RangeError],
    [{ backoffMs: { min: 5, max: 1 } }, RangeError],
    [{ handlerTimeoutMs: 0 }, RangeError],
    [{ paralel: 3 } as ConsumeOptions, TypeError],
  ])("consume refuses %j before anything is taken", async (options, kind) => {
    const { open } = await make();
    const handoff = await open();
    expect(() => handoff.consume(async () => undefined, options)).toThrow(kind);
  });
});

describe("hints", () => {
  it("are only hints: without them, tickets of other processes are still found", async () => {
    const site = await makeRealSite();
    const { directory } = boxSiteOn(site);
    const ports = await site.openPorts();
    const silent = { ...ports, watch: { start: () => () => undefined } };
    const [worker, publisher] = [await openOn(silent, directory), await openOn(await site.openPorts(), directory)];
    const seen: string[] = [];
    const consumer = worker.consume(async ({ key }) => void seen.push(key));
    for (const key of ["one", "two"]) {
      await publisher.publish({ "a.txt": key }, { key });
      await until(() => seen.includes(key));
    }
    await publisher.publish({ "a.txt": "three" }, { key: "three", group: "g", delayMs: 10 });
    await until(() => seen.includes("three"));
    await consumer.stop();
  });
});

describe("many workers in one process", () => {
  it("leave no listeners behind, and Node sees no leak", async () => {
    const warnings: string[] = [];
    const warn = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", warn);
    try {
      const { open } = boxSiteOn(await makeRealSite());
      const handoff = await open();
      const controller = new AbortController();
      const { signal } = controller;
      let running = 0;
      const consumer = handoff.consume(
        async () => {
          running++;
          await until(() => running === 16);
        },
        { concurrency: 16, signal },
      );
      for (let number = 0; number < 16; number++) await handoff.publish({ "a.txt": `${number}` });
      await until(() => running === 16);
      await Promise.all(Array.from({ length: 16 }, () => handoff.take({ waitMs: 50, signal })));
      await consumer.stop();
    } finally {
      process.off("warning", warn);
    }
    expect(warnings).toEqual([]);
  });
});
