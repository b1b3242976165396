// The history of a ticket: what is told of it however often it was tried, and what a commit that cannot send leaves.
import { expect, it } from "vitest";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import type { DeadLetter } from "../../src/handoff/model/handoff.ts";
import { World } from "../sites/world.ts";
import { until } from "../waiting.ts";
import { statesOf } from "./consume/boxes.ts";

it("the history of a ticket has its last 100 attempts", async () => {
  await using box = await openHandoff("memory:");
  const { id } = await box.publish({ "a.txt": "one" });
  let attempts = 0;
  const consumer = box.consume(
    async ({ attempt }) => {
      attempts = attempt;
      throw new Error(`number ${attempt}`);
    },
    { attempts: 130, backoffMs: { min: 0, max: 0 } },
  );
  await until(async () => (await box.stats()).error === 1);
  await consumer.stop();
  const history = (await box.find(id))?.history ?? [];
  expect(attempts).toBe(130);
  expect(history.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 100 }, (_, index) => index + 31));
  expect(history.at(-1)).toMatchObject({ outcome: "fail", reason: "Error: number 130" });
});

it("claims that were given back hide no attempt in the history", async () => {
  await using box = await openHandoff("memory:");
  const { id } = await box.publish({ "a.txt": "one" });
  await (await box.take())!.retry({ reason: "the ERP is busy" });
  for (let times = 0; times < 120; times++) await (await box.take({ waitMs: 60_000 }))![Symbol.asyncDispose]();
  expect((await box.find(id))?.history).toMatchObject([{ attempt: 1, outcome: "retry", reason: "the ERP is busy" }]);
});

it("a sent ticket that cannot be published is retried, ends in the dead letters, and a replay sends it once", async () => {
  const world = new World();
  const leaseMs = 2_000;
  const { disk } = world.ports("watcher");
  const open = async (process: string, directory: string): Promise<BoxHandoff> =>
    new BoxHandoff(await openBox(world.ports(process), directory, { leaseMs }), { leaseMs });
  const inTime = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false;
    const over = (): boolean => (isOver = true);
    void work.then(over, over);
    while (!isOver) await world.advance(20);
    return await work;
  };
  const target = await open("receiver", "/target");
  const ada = await open("ada", "/box");
  const { id } = await ada.publish({ "a.txt": "one" }, { key: "order 1" });
  const delivery = (await ada.take())!;
  await delivery.send(target, { "b.txt": "two" });
  await inTime(target.close());
  await disk.rename("/target", "/away");
  await inTime(delivery.ack("done"));
  await inTime(ada.close());

  const bea = await open("bea", "/box");
  const dead: DeadLetter[] = [];
  const handler = async (): Promise<void> => {
    throw new Error("It is done: no handler may see it.");
  };
  const consumer = bea.consume(handler, { attempts: 2, onDeadLetter: (ticket) => dead.push(ticket) });
  for (let step = 0; step < 300 && dead.length === 0; step++) await world.advance(100);
  const reason = expect.stringMatching(
    /^It is done, but the tickets it sends cannot be published: .* Replay it when/,
  ) as string;
  expect(dead).toEqual([{ id, attempt: 3, outcome: "fail", reason }]);
  expect(Object.keys(await statesOf(disk, "/box"))).toEqual(["error"]);

  await disk.rename("/away", "/target");
  expect(await inTime(bea.replay({ from: "error" }))).toBe(1);
  for (let step = 0; step < 100 && (await statesOf(disk, "/box")).archive === undefined; step++)
    await world.advance(100);
  await inTime(consumer.stop());
  expect(Object.keys(await statesOf(disk, "/box"))).toEqual(["archive"]);
  const receiver = await open("receiver 2", "/target");
  const received = (await receiver.take())!;
  expect(await received.text("b.txt")).toBe("two");
  await received.ack();
  expect(await receiver.take()).toBeUndefined();
});
