// The contract of a hand-off box: every promise of the interface, for any way to open one.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Delivery } from "../../src/handoff/model/delivery.ts";
import type { Handoff } from "../../src/handoff/model/handoff.ts";
import { drain, type HandoffSite } from "../sites/boxes.ts";
import { failureOf, listOf, numbers } from "../sites/event-logs.ts";
import { until } from "../waiting.ts";

const inlineMax = 64 * 1024;
const large = "x".repeat(inlineMax + 1);
const lost = { code: "CLAIM_LOST" };
const fast = { backoffMs: { min: 1, max: 4 } };

export function describeContract(name: string, make: () => Promise<HandoffSite>): void {
  describe(`a hand-off box on ${name}`, () => {
    describePublishing(make);
    describeKeys(make);
    describeTaking(make);
    describeSettling(make);
    describeConsuming(make);
    describeOutputs(make);
    describeTimes(make);
    describeGroups(make);
    describeChecking(make);
    describeLosing(make);
    describeClosing(make);
  });
}

/** The part that takes seconds where each opening is a connection to a server. */
export function describeShortContract(name: string, make: () => Promise<HandoffSite>): void {
  describe(`a hand-off box on ${name}`, () => {
    describeSettling(make);
    describeOutputs(make);
    describeGroups(make);
  });
}

async function getTaken(box: Handoff): Promise<Delivery> {
  const delivery = await box.take({ waitMs: 60_000 });
  if (delivery === undefined) throw new Error("nothing came");
  return delivery;
}

async function* piecesOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function describePublishing(make: () => Promise<HandoffSite>): void {
  describe("publish", () => {
    it("hands over a bundle of files with its manifest", async () => {
      const site = await make();
      const [producer, worker] = [await site.open(), await site.open()];
      const { id, key, duplicate } = await producer.publish(
        { "invoice 7.xml": "<total>12</total>", "empty.txt": "", "Größe.bin": Uint8Array.of(0, 255, 10) },
        {
          priority: 2,
          records: { "invoice 7.xml": 1 },
          contentTypes: { "invoice 7.xml": "text/xml" },
          meta: { from: "till 3", nested: [1, null] },
        },
      );
      expect({ key, duplicate }).toEqual({ key: id, duplicate: false });
      const delivery = await getTaken(worker);
      expect(delivery).toMatchObject({
        id,
        key: id,
        attempt: 1,
        priority: 2,
        meta: { from: "till 3", nested: [1, null] },
        files: [
          {
            name: "invoice 7.xml",
            size: 17,
            sha256: sha256Of("<total>12</total>"),
            records: 1,
            contentType: "text/xml",
          },
          { name: "empty.txt", size: 0, sha256: sha256Of("") },
          { name: "Größe.bin", size: 3 },
        ],
      });
      expect(delivery.createdAt).toBeInstanceOf(Date);
      expect(delivery.producer).toEqual({ host: expect.any(String) as string, pid: expect.any(Number) as number });
      expect(await delivery.text("invoice 7.xml")).toBe("<total>12</total>");
      expect(await delivery.text("empty.txt")).toBe("");
      expect([...(await delivery.bytes("Größe.bin"))]).toEqual([0, 255, 10]);
      await delivery.ack();
    });

    it.each([
      ["in the ticket", "small"],
      ["beside it", large],
    ])("gives bytes, text, a stream and a path of a file %s", async (_, text) => {
      const site = await make();
      const box = await site.open();
      await box.publish({ "a.txt": piecesOf(text.slice(0, 3), text.slice(3)) });
      const delivery = await getTaken(box);
      expect(await delivery.text("a.txt")).toBe(text);
      expect(Buffer.from(await delivery.bytes("a.txt")).toString()).toBe(text);
      expect(Buffer.concat(await listOf(delivery.stream("a.txt"))).toString()).toBe(text);
      const path = await delivery.path("a.txt");
      expect(await site.readAt(path)).toBe(text);
      expect(await delivery.path("a.txt")).toBe(path);
      await expect(delivery.text("b.txt")).rejects.toThrow(/has no file "b.txt"; it has a.txt/);
    });

    it.each<[what: string, files: Record<string, string>, options: object, error: object]>([
      ["no files", {}, {}, { name: "TypeError" }],
      ["a name with a separator", { "a/b": "" }, {}, { code: "INVALID_NAME" }],
      ["a name of a device", { "nul.txt": "" }, {}, { code: "INVALID_NAME" }],
      ["a name of 300 characters", { ["n".repeat(300)]: "" }, {}, { code: "INVALID_NAME" }],
      ["names that differ in case only", { a: "", A: "" }, {}, { code: "INVALID_NAME" }],
      ["an unknown option", { a: "" }, { prio: 1 }, { name: "TypeError" }],
      ["a priority of 10", { a: "" }, { priority: 10 }, { name: "RangeError" }],
      ["an empty key", { a: "" }, { key: "" }, { name: "TypeError" }],
    ])("refuses %s, and writes nothing", async (_, files, options, error) => {
      const site = await make();
      const box = await site.open();
      const before = await site.stored();
      expect(await failureOf(box.publish(files, options))).toMatchObject(error);
      expect(await site.stored()).toEqual(before);
    });

    it("leaves nothing of a payload whose source fails", async () => {
      const site = await make();
      const box = await site.open();
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.from(large);
        throw new Error("the source is gone");
      }
      const before = await site.stored();
      await expect(box.publish({ a: failing() }, { key: "k" })).rejects.toThrow("the source is gone");
      expect(await site.stored()).toEqual(before);
      expect(await box.take()).toBeUndefined();
      expect(await box.publish({ a: large }, { key: "k" })).toMatchObject({ duplicate: false });
    });

    it("publishMany answers in the order given, and a duplicate gets the first id", async () => {
      const site = await make();
      const box = await site.open();
      const items = numbers(1, 70).map((number) => ({ files: { n: String(number) }, key: `n-${number}` }));
      const first = await listOf(box.publishMany(items));
      expect(first.map(({ key }) => key)).toEqual(items.map(({ key }) => key));
      expect(first.every(({ duplicate }) => !duplicate)).toBe(true);
      const again = await listOf(box.publishMany(items.slice(5, 8)));
      expect(again).toEqual(first.slice(5, 8).map(({ id, key }) => ({ id, key, duplicate: true })));
      expect(await drain(box, (delivery) => delivery.ack())).toBe(70);
    });
  });
}

function describeKeys(make: () => Promise<HandoffSite>): void {
  describe("a key", () => {
    it("is published once by many producers at the same moment", async () => {
      const site = await make();
      const producers = [await site.open(), await site.open(), await site.open()];
      const answers = await Promise.all(
        numbers(1, 9).map((number) => producers[number % 3]!.publish({ a: large + number }, { key: "invoice/7" })),
      );
      expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
      expect(await drain(producers[0]!, (delivery) => delivery.ack())).toBe(1);
      // The payload of those that came second is gone.
      expect(await site.payloads()).toHaveLength(1);
    });

    it("stays a duplicate permanently after it was processed", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" }, { key: "k" });
      await (await getTaken(box)).ack("done");
      expect(await (await site.open()).publish({ a: "2" }, { key: "k" })).toEqual({ id, key: "k", duplicate: true });
      expect(await box.take()).toBeUndefined();
    });

    it.each(["x/y", "x_y", "X/Y", "..", "con", "ä", "a".repeat(1024), " "])(
      "%j is distinct from all others",
      async (key) => {
        const box = await (await make()).open();
        const others = ["x/y", "x_y", "X/Y", "ä", "a".repeat(1023), "  "].filter((other) => other !== key);
        for (const other of others) await box.publish({ a: "" }, { key: other });
        expect(await box.publish({ a: "" }, { key })).toMatchObject({ key, duplicate: false });
      },
    );
  });
}

function describeTaking(make: () => Promise<HandoffSite>): void {
  describe("take", () => {
    it("returns undefined for an empty box, and waits no longer than waitMs", async () => {
      const box = await (await make()).open();
      expect(await box.take()).toBeUndefined();
      expect(await box.take({ waitMs: 30 })).toBeUndefined();
    });

    it("waits for a ticket that another process publishes", async () => {
      const site = await make();
      const [producer, worker] = [await site.open(), await site.open()];
      const taking = worker.take({ waitMs: 60_000 });
      const { id } = await producer.publish({ a: "1" });
      expect((await taking)?.id).toBe(id);
    });

    it("gives each ticket to one of many workers", async () => {
      const site = await make();
      const producer = await site.open();
      const published = await listOf(producer.publishMany(numbers(1, 24).map(() => ({ files: { a: "1" } }))));
      const workers = [await site.open(), await site.open(), await site.open()];
      const taken: string[] = [];
      await Promise.all(
        workers.flatMap((worker) =>
          [1, 2].map(() =>
            drain(worker, async (delivery) => {
              taken.push(delivery.id);
              await delivery.ack();
            }),
          ),
        ),
      );
      expect(taken.sort()).toEqual(published.map(({ id }) => id).sort());
    });

    it("gives the most urgent ticket first", async () => {
      const box = await (await make()).open();
      for (const priority of [9, 5, 0, 7, 1]) await box.publish({ a: "" }, { priority });
      const order: number[] = [];
      await drain(box, async (delivery) => {
        order.push(delivery.priority);
        await delivery.ack();
      });
      expect(order).toEqual([0, 1, 5, 7, 9]);
    });

    it("gives the most urgent first even if other processes claim most of its listing", async () => {
      const site = await make();
      const [box, rival] = [await site.open(), await site.open()];
      const items = Array.from({ length: 60 }, (_, index) => ({ files: { a: "" }, priority: index < 12 ? 0 : 5 }));
      for await (const _ of box.publishMany(items));
      const order: number[] = [];
      const takeOne = async (from: Handoff): Promise<void> => {
        await using delivery = await from.take();
        order.push(delivery?.priority ?? -1);
        await delivery?.ack();
      };
      for (const from of [box, rival, rival, rival, rival, box, rival, rival, rival, box, rival, box])
        await takeOne(from);
      expect(order).toEqual(Array.from({ length: 12 }, () => 0));
    });

    it("ends with the reason of its signal", async () => {
      const box = await (await make()).open();
      const stop = new AbortController();
      const taking = failureOf(box.take({ waitMs: Infinity, signal: stop.signal }));
      stop.abort("enough");
      expect(await taking).toBe("enough");
    });

    it("deliveries yields one delivery after the other until its signal aborts", async () => {
      const box = await (await make()).open();
      for await (const _ of box.publishMany([1, 2, 3].map((number) => ({ files: { n: String(number) } }))));
      const stop = new AbortController();
      const seen: string[] = [];
      const reading = failureOf(
        (async () => {
          for await (const delivery of box.deliveries({ signal: stop.signal })) {
            seen.push(await delivery.text("n"));
            await delivery.ack();
            if (seen.length === 3) stop.abort("enough");
          }
        })(),
      );
      expect(await reading).toBe("enough");
      expect(seen.sort()).toEqual(["1", "2", "3"]);
    });
  });
}

function describeSettling(make: () => Promise<HandoffSite>): void {
  describe("a delivery", () => {
    it("that is acknowledged is in the archive with its result, and is not delivered again", async () => {
      const site = await make();
      const [producer, worker] = [await site.open(), await site.open()];
      const { id } = await producer.publish({ a: "1" });
      await (await getTaken(worker)).ack({ booked: 7 });
      expect(await site.find(id)).toMatchObject({ state: "archive", attempt: 1, result: { booked: 7 }, history: [] });
      expect(await producer.take()).toBeUndefined();
    });

    it("that is retried counts the attempts and keeps the reasons", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      for (const attempt of [1, 2, 3]) {
        const delivery = await getTaken(box);
        expect(delivery.attempt).toBe(attempt);
        expect(await delivery.text("a")).toBe("1");
        if (attempt < 3) await delivery.retry({ reason: `reason ${attempt}` });
        else await delivery.ack();
      }
      expect((await site.find(id))?.history).toMatchObject([
        { attempt: 1, outcome: "retry", reason: "reason 1" },
        { attempt: 2, outcome: "retry", reason: "reason 2" },
      ]);
    });

    it("that fails permanently is a dead letter with its reason and its history", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      await (await getTaken(box)).retry({ reason: "busy" });
      await (await getTaken(box)).fail("no such customer");
      expect(await site.find(id)).toMatchObject({
        state: "error",
        attempt: 2,
        history: [
          { outcome: "retry", reason: "busy" },
          { attempt: 2, outcome: "fail", reason: "no such customer", at: expect.any(Date) as Date },
        ],
      });
      expect(await box.take()).toBeUndefined();
    });

    it("that is disposed of unsettled returns at once, and counts no attempt", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      for (let round = 0; round < 3; round++) {
        await using delivery = await getTaken(box);
        expect(delivery.attempt).toBe(1);
      }
      expect(await site.find(id)).toMatchObject({ state: "incoming", attempt: 0, history: [] });
    });

    it("is settled once", async () => {
      const site = await make();
      const box = await site.open();
      await box.publish({ a: "1" });
      const delivery = await getTaken(box);
      await delivery.ack(1);
      await expect(delivery.ack(2)).rejects.toThrow("is already settled");
      await expect(delivery.fail("no")).rejects.toThrow("is already settled");
      await expect(delivery.retry()).rejects.toThrow("is already settled");
      await expect(delivery.output("a", "")).rejects.toThrow("is already settled");
      await delivery[Symbol.asyncDispose]();
      expect((await site.findCommitted(delivery.key))?.committed.result).toBe(1);
      expect(await box.take()).toBeUndefined();
    });
  });
}

function describeConsuming(make: () => Promise<HandoffSite>): void {
  describe("consume", () => {
    it("passes each ticket to the handler, and commits its result", async () => {
      const site = await make();
      const [producer, worker] = [await site.open(), await site.open()];
      const seen: string[] = [];
      await using _ = worker.consume(async (delivery) => {
        seen.push(delivery.id);
        return { length: (await delivery.text("a")).length };
      });
      const published = await listOf(
        producer.publishMany(numbers(1, 8).map((number) => ({ files: { a: "x".repeat(number) } }))),
      );
      await until(async () => (await site.find(published.at(-1)!.id))?.state === "archive" && seen.length === 8);
      expect(seen.sort()).toEqual(published.map(({ id }) => id).sort());
      await until(async () => (await site.findCommitted(published[2]!.key)) !== undefined);
      expect((await site.findCommitted(published[2]!.key))?.committed.result).toEqual({ length: 3 });
    });

    it("tries again what the handler throws, until `attempts`, then keeps it as a dead letter", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      const attempts: number[] = [];
      await using _ = box.consume(
        async ({ attempt }) => {
          attempts.push(attempt);
          throw new RangeError(`attempt ${attempt} failed`);
        },
        { attempts: 3, ...fast },
      );
      await until(async () => (await site.find(id))?.state === "error");
      expect(attempts).toEqual([1, 2, 3]);
      expect((await site.find(id))?.history).toMatchObject([
        { attempt: 1, outcome: "retry", reason: "RangeError: attempt 1 failed" },
        { attempt: 2, outcome: "retry", reason: "RangeError: attempt 2 failed" },
        { attempt: 3, outcome: "fail", reason: "RangeError: attempt 3 failed" },
      ]);
    });

    it("asks `onError` what a thrown error means", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      await using _ = box.consume(
        async ({ attempt }) => {
          throw new Error(attempt === 1 ? "busy" : "hopeless");
        },
        { ...fast, onError: (error) => ((error as Error).message === "busy" ? "retry" : "fail") },
      );
      await until(async () => (await site.find(id))?.state === "error");
      expect((await site.find(id))?.history).toMatchObject([
        { outcome: "retry", reason: "Error: busy" },
        { outcome: "fail", reason: "Error: hopeless" },
      ]);
    });

    it("runs at most `concurrency` handlers at the same time", async () => {
      const site = await make();
      const box = await site.open();
      for await (const _ of box.publishMany(numbers(1, 9).map(() => ({ files: { a: "" } }))));
      let [now, most, done] = [0, 0, 0];
      await using _ = box.consume(
        async () => {
          most = Math.max(most, ++now);
          await until(() => most === 3);
          now--;
          done++;
        },
        { concurrency: 3 },
      );
      await until(() => done === 9);
      expect(most).toBe(3);
    });

    it("finishes its current tickets when it is stopped, and takes no new ones", async () => {
      const site = await make();
      const box = await site.open();
      await box.publish({ a: "1" });
      let [begun, finish] = [0, false];
      const consumer = box.consume(async () => {
        begun++;
        await until(() => finish);
        return "finished";
      });
      await until(() => begun === 1);
      const stopping = consumer.stop();
      const { id: second } = await box.publish({ a: "2" });
      finish = true;
      await stopping;
      expect(begun).toBe(1);
      expect((await site.find(second))?.state).toBe("incoming");
    });

    it("returns unfinished tickets when the time to drain is over", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      let [begun, finish] = [false, false];
      const consumer = box.consume(async () => {
        begun = true;
        await until(() => finish);
      });
      await until(() => begun);
      await consumer.stop({ drainMs: 0 });
      expect(await site.find(id)).toMatchObject({ state: "incoming", attempt: 0 });
      finish = true;
    });

    it("treats a handler that is too slow as failed", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      await using _ = box.consume(
        async ({ attempt }) => {
          if (attempt === 1) await new Promise(() => undefined);
          return attempt;
        },
        { ...fast, handlerTimeoutMs: 20 },
      );
      await until(async () => (await site.find(id))?.state === "archive");
      expect(await site.find(id)).toMatchObject({ result: 2, history: [{ outcome: "retry" }] });
    });
  });
}

function describeOutputs(make: () => Promise<HandoffSite>): void {
  describe("an output", () => {
    it("appears with the result in one step, or never", async () => {
      const site = await make();
      const box = await site.open();
      await box.publish({ a: "1" }, { key: "k" });
      const first = await getTaken(box);
      await first.output("never.txt", "of the first attempt");
      await first.retry();
      const second = await getTaken(box);
      await second.output("receipt.txt", piecesOf("paid", " in full"));
      await second.output("big.bin", large);
      expect(await site.findCommitted("k")).toBeUndefined();
      await second.ack("ok");
      const entry = await site.findCommitted("k");
      expect(entry?.committed).toMatchObject({
        result: "ok",
        outputs: [
          { name: "receipt.txt", size: 12, sha256: sha256Of("paid in full") },
          { name: "big.bin", size: large.length },
        ],
      });
      const reading = async (name: string): Promise<string> =>
        Buffer.concat(await listOf(box.content(second.id, name, { output: true }))).toString();
      expect(await reading("receipt.txt")).toBe("paid in full");
      expect(await reading("big.bin")).toBe(large);
      expect(await failureOf(reading("never.txt"))).toMatchObject({ code: "NO_SUCH_FILE" });
    });

    it("has a unique name that every file system accepts", async () => {
      const box = await (await make()).open();
      await box.publish({ a: "1" });
      const delivery = await getTaken(box);
      await delivery.output("a.txt", "1");
      await expect(delivery.output("a.txt", "2")).rejects.toThrow(/already an output "a.txt"/);
      expect(await failureOf(delivery.output("a/b", "2"))).toMatchObject({ code: "INVALID_NAME" });
      await delivery.ack();
    });

    it("sent to a box that does not exist is refused, and creates no box", async () => {
      const site = await make();
      const box = await site.open();
      await box.publish({ a: "1" });
      const delivery = await getTaken(box);
      const directory = `${box.directory}-none`;
      expect(await failureOf(delivery.send({ directory }, { a: "1" }))).toMatchObject({
        code: "NOT_A_STORE",
        path: directory,
        message: expect.stringContaining("Open the box once to create it.") as string,
      });
      await delivery.ack();
    });

    it("that is sent is a ticket of the other box, once, and only after the result", async () => {
      const site = await make();
      const [box, other] = [await site.open(), await site.open({ name: "other" })];
      await box.publish({ a: "1" }, { key: "k" });
      const first = await getTaken(box);
      await first.send(other, { "draft.txt": "1" });
      await first.retry();
      const second = await getTaken(box);
      await second.send(other, { "mail.txt": "hello" }, { meta: { to: "ada" }, priority: 1 });
      await second.send(other, { "big.txt": large });
      expect(await other.take()).toBeUndefined();
      await second.ack();
      const seen: unknown[] = [];
      await drain(other, async (delivery) => {
        seen.push([delivery.files[0]?.name, delivery.priority, delivery.meta]);
        await delivery.ack();
      });
      expect(seen).toEqual([
        ["mail.txt", 1, { to: "ada" }],
        ["big.txt", 5, undefined],
      ]);
    });
  });
}

function describeTimes(make: () => Promise<HandoffSite>): void {
  describe("time", () => {
    it("a delayed ticket is not delivered before it is due", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" }, { delayMs: 400 });
      expect(await box.take()).toBeUndefined();
      expect((await site.find(id))?.state).toBe("delayed");
      const delivery = await getTaken(await site.open());
      expect(delivery.notBefore).toBeInstanceOf(Date);
      await delivery.ack(null);
      const { at } = (await site.findCommitted(id))!.committed;
      expect(Date.parse(at)).toBeGreaterThanOrEqual(delivery.notBefore!.getTime());
    });

    it("a retry waits for its delayMs", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      await (await getTaken(box)).retry({ delayMs: 3_600_000 });
      expect(await box.take()).toBeUndefined();
      expect(await site.find(id)).toMatchObject({ state: "delayed", attempt: 1 });
    });

    it("a postponed ticket returns after that time, and no attempt counts", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" });
      for (let times = 1; times <= 7; times++) await (await getTaken(box)).postpone({ delayMs: 1 });
      const delivery = await getTaken(box);
      expect(delivery.attempt).toBe(1);
      await delivery.postpone({ delayMs: 3_600_000 });
      expect(await box.take()).toBeUndefined();
      expect(await site.find(id)).toMatchObject({ state: "delayed", history: [] });
      await expect(delivery.ack()).rejects.toThrow("is already settled");
    });

    it("an expired ticket is a dead letter that no handler sees", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: "1" }, { expiresMs: 0 });
      const later = await box.publish({ a: "2" }, { expiresMs: 3_600_000 });
      expect((await getTaken(box)).id).toBe(later.id);
      expect(await box.take()).toBeUndefined();
      expect(await site.find(id)).toMatchObject({ state: "error", history: [{ outcome: "expired" }] });
    });
  });
}

function describeGroups(make: () => Promise<HandoffSite>): void {
  describe("a group", () => {
    it("is processed in the order of publication, one ticket at a time, by all workers together", async () => {
      const site = await make();
      const producers = [await site.open(), await site.open()];
      for (const number of numbers(1, 6))
        for (const group of ["north", "south"])
          await producers[number % 2]!.publish({ n: String(number) }, { group, priority: number % 10 });
      const seen: Record<string, number[]> = { north: [], south: [] };
      const busy = new Set<string>();
      const handler = async (delivery: Delivery): Promise<void> => {
        const group = delivery.group ?? "";
        expect(busy.has(group)).toBe(false);
        busy.add(group);
        seen[group]?.push(Number(await delivery.text("n")));
        busy.delete(group);
      };
      const consumers = [await site.open(), await site.open()].map((box) => box.consume(handler, { concurrency: 2 }));
      await until(() => seen.north!.length + seen.south!.length >= 12);
      for (const consumer of consumers) await consumer.stop();
      expect(seen).toEqual({ north: numbers(1, 6), south: numbers(1, 6) });
    });

    it("waits for a ticket that is retried or was given back", async () => {
      const site = await make();
      const box = await site.open();
      for (const number of [1, 2, 3]) await box.publish({ n: String(number) }, { group: "g" });
      const order: string[] = [];
      const steps: ((delivery: Delivery) => Promise<void>)[] = [
        (delivery) => delivery.retry(),
        (delivery) => delivery.ack(),
        async (delivery) => await delivery[Symbol.asyncDispose](),
        (delivery) => delivery.fail("no"),
        (delivery) => delivery.ack(),
      ];
      for (const step of steps) {
        const delivery = await getTaken(box);
        order.push(await delivery.text("n"));
        await step(delivery);
      }
      expect(order).toEqual(["1", "1", "2", "2", "3"]);
    });

    it("waits for a postponed ticket until it is due, and counts no attempt", async () => {
      const site = await make();
      const box = await site.open();
      for (const number of [1, 2]) await box.publish({ n: String(number) }, { group: "g" });
      await (await getTaken(box)).postpone({ delayMs: 1 });
      const first = await getTaken(box);
      expect([await first.text("n"), first.attempt]).toEqual(["1", 1]);
      await first.postpone({ delayMs: 3_600_000 });
      expect(await box.take()).toBeUndefined();
      expect(await site.find(first.id)).toMatchObject({ state: "incoming", attempt: 0, history: [] });
    });
  });
}

function describeChecking(make: () => Promise<HandoffSite>): void {
  describe("what does not fit its manifest", () => {
    it.each([
      ["altered", large.replace("x", "y"), /its SHA-256 is/],
      ["cut off", "x".repeat(inlineMax), /it has 65536 instead of 65537 bytes/],
      ["longer", `${large}x`, /it has more than 65537 bytes/],
    ])("is a dead letter that no handler sees: %s", async (_, text, reason) => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: large });
      await site.spoilPayload(id, text);
      expect(await box.take()).toBeUndefined();
      const info = await site.find(id);
      expect(info).toMatchObject({ state: "error", attempt: 1, history: [{ outcome: "mismatch" }] });
      expect(info?.history[0]?.reason).toMatch(reason);
    });
  });
}

function describeLosing(make: () => Promise<HandoffSite>): void {
  describe("a worker that was judged dead", () => {
    it.each<[how: string, settle: (delivery: Delivery) => Promise<void>]>([
      ["ack", (delivery) => delivery.ack("too late")],
      ["retry", (delivery) => delivery.retry()],
      ["fail", (delivery) => delivery.fail("too late")],
      ["output", (delivery) => delivery.output("a", "too late")],
    ])("gets CLAIM_LOST from %s, and another one does the work", async (_, settle) => {
      const site = await make();
      const [sleeper, worker] = [await site.open(), await site.open()];
      const { id } = await sleeper.publish({ a: "1" });
      const claimed = await getTaken(sleeper);
      await claimed.output("staged.txt", "by the sleeper");
      await site.declareDead(claimed);
      const second = await getTaken(worker);
      expect(second).toMatchObject({ id, attempt: 2 });
      expect(await failureOf(settle(claimed))).toMatchObject(lost);
      await until(() => claimed.signal.aborted);
      expect(claimed.signal.reason).toMatchObject(lost);
      await claimed[Symbol.asyncDispose]();
      await second.ack("in time");
      expect(await site.find(id)).toMatchObject({ state: "archive", result: "in time" });
      expect(await sleeper.take()).toBeUndefined();
    });

    it("gets CLAIM_LOST also after the work was done", async () => {
      const site = await make();
      const [sleeper, worker] = [await site.open(), await site.open()];
      const { id } = await sleeper.publish({ a: "1" });
      const claimed = await getTaken(sleeper);
      await site.declareDead(claimed);
      await (await getTaken(worker)).ack("in time");
      expect(await failureOf(claimed.ack("too late"))).toMatchObject(lost);
      expect((await site.find(id))?.result).toBe("in time");
    });

    it("continues in a new session", async () => {
      const site = await make();
      // It looks for the dead, and so for its former self, each quarter of a lease.
      const box = await site.open({ leaseMs: 6_000 });
      const { id } = await box.publish({ a: "1" });
      const claimed = await getTaken(box);
      await site.declareDead(claimed);
      expect(await failureOf(claimed.retry())).toMatchObject(lost);
      expect(await getTaken(box)).toMatchObject({ id, attempt: 2 });
    });

    it("ends as a dead letter when it happens too often", async () => {
      const site = await make();
      const worker = await site.open();
      const { id } = await worker.publish({ a: "1" });
      for (let attempt = 1; attempt <= 5; attempt++) {
        const victim = await site.open();
        const claimed = await getTaken(victim);
        expect(claimed.attempt).toBe(attempt);
        await site.declareDead(claimed);
      }
      await until(async () => (await worker.take()) === undefined && (await site.find(id))?.state === "error");
      expect((await site.find(id))?.history).toMatchObject(
        // One for each worker that died, and one that says that these were too many.
        [1, 2, 3, 4, 5, 6].map((attempt) => ({ attempt, outcome: "lost" })),
      );
    });
  });
}

function describeClosing(make: () => Promise<HandoffSite>): void {
  describe("close", () => {
    it("returns claimed tickets, stops the consumers, and refuses all further calls", async () => {
      const site = await make();
      const [box, other] = [await site.open(), await site.open()];
      const { id } = await box.publish({ a: "1" });
      await getTaken(box);
      const consumer = box.consume(async () => undefined);
      await box.close();
      await consumer.done;
      expect((await getTaken(other)).id).toBe(id);
      const closed = { code: "CLOSED" };
      expect(await failureOf(box.publish({ a: "1" }))).toMatchObject(closed);
      expect(await failureOf(box.take())).toMatchObject(closed);
      expect(await failureOf(listOf(box.deliveries()))).toMatchObject(closed);
      expect(await failureOf(listOf(box.publishMany([{ files: { a: "" } }])))).toMatchObject(closed);
      expect(await failureOf(box.consume(async () => undefined).done)).toMatchObject(closed);
      await box.close();
    });

    it("leaves the box unchanged", async () => {
      const site = await make();
      const box = await site.open();
      const { id } = await box.publish({ a: large }, { key: "k" });
      await box.close();
      const delivery = await getTaken(await site.open());
      expect(delivery).toMatchObject({ id, key: "k", attempt: 1 });
      expect(await delivery.text("a")).toBe(large);
    });
  });
}
