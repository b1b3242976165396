// Consumers: every event is handled, by one process at a time, and a checkpoint keeps what was
// handled.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import type { EventConsumer, EventStore } from "../../../src/events/model/event-store.ts";
import { Checkpoints } from "../../../src/part/progress/checkpoints.ts";
import { workOn } from "../../../src/events/follow/log-work.ts";
import { accessOf } from "../../../src/events/log/log-access.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { until } from "../../waiting.ts";
import { kinds, LogWorld, withDisk } from "./log-world.ts";
import { SleepWhileStaging } from "./sleep-while-staging.ts";

type Counted = NewEvent<"even", { number: number }> | NewEvent<"odd", { number: number }>;

function counted(number: number): Counted {
  return { type: number % 2 === 0 ? "even" : "odd", data: { number } };
}

function numbers(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_each, index) => first + index);
}

async function append(store: EventStore<Counted>, first: number, last: number): Promise<void> {
  for (const number of numbers(first, last)) await store.append(counted(number));
}

describe.each(kinds)("on %s", (kind) => {
  test("a consumer gets every matching event in order, also those that are appended later", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    await append(store, 1, 4);
    const seen: number[] = [];
    await using consumer = store.consume("mailer", { types: ["even"] }, async (events) => {
      seen.push(...events.map((event) => event.data.number));
    });
    await append(store, 5, 8);
    await consumer.waitUntilProcessed(8);
    expect(seen).toEqual([2, 4, 6, 8]);
    expect(await consumer.position()).toBe(8);
  });

  test("all consumers are listed, with their lag, the process that runs each, and those that wait", async () => {
    const world = await LogWorld.make(kind);
    const [one, other] = [await world.open<Counted>(), await world.open<Counted>()];
    expect(await one.consumers()).toEqual([]);
    await append(one, 1, 3);
    const mailer = one.consume("Mailer ü", "all", async () => undefined);
    await mailer.waitUntilProcessed(3);
    const standby = other.consume("Mailer ü", "all", async () => undefined);
    const stopped = other.consume("counter", "all", async () => undefined);
    await stopped.waitUntilProcessed(3);
    await stopped.stop();
    await append(one, 4, 5);
    await mailer.waitUntilProcessed(5);
    await until(async () => (await other.consumers())[0]?.waiting.length === 1);
    const listed = await other.consumers();
    expect(listed).toMatchObject([
      { name: "Mailer ü", position: 5, lag: 0 },
      { name: "counter", position: 3, lag: 2 },
    ]);
    expect(listed[0]?.holder).toMatchObject({ state: "alive" });
    expect(listed[0]?.waiting[0]?.id).not.toBe(listed[0]?.holder?.id);
    expect(Date.now() - (listed[0]?.since?.getTime() ?? 0)).toBeLessThan(60_000);
    expect(listed[1]).toEqual({ name: "counter", position: 3, lag: 2, waiting: [] });
    await Promise.all([mailer.stop(), standby.stop()]);
    expect((await one.consumers())[0]).toEqual({ name: "Mailer ü", position: 5, lag: 0, waiting: [] });
  });

  test("a consumer goes on where it stopped, also in another process", async () => {
    const world = await LogWorld.make(kind);
    const [one, other] = [await world.open<Counted>(), await world.open<Counted>()];
    await append(one, 1, 3);
    const seen: string[] = [];
    const consumeIn = (store: EventStore<Counted>, name: string): EventConsumer =>
      store.consume("mailer", "all", async ([event]) => void seen.push(`${name}${event?.position}`));
    const first = consumeIn(one, "a");
    await first.waitUntilProcessed(3);
    await first.stop();
    await append(one, 4, 5);
    const second = consumeIn(other, "b");
    await second.waitUntilProcessed(5);
    await second.stop();
    expect(seen).toEqual(["a1", "a2", "a3", "b4", "b5"]);
  });

  test("of two processes one works, and the other takes over when the first closes", async () => {
    const world = await LogWorld.make(kind);
    const [one, other] = [await world.open<Counted>(), await world.open<Counted>()];
    const seen: [string, number][] = [];
    const first = one.consume("mailer", "all", async ([event]) => void seen.push(["one", event!.position]));
    await append(one, 1, 1);
    await first.waitUntilProcessed(1);
    const second = other.consume("mailer", "all", async ([event]) => void seen.push(["other", event!.position]));
    await append(one, 2, 10);
    // Read your writes, also in the process that does not work.
    await second.waitUntilProcessed(10);
    expect(new Set(seen.map(([who]) => who))).toEqual(new Set(["one"]));
    await one.close();
    await first.done;
    await append(other, 11, 12);
    await second.waitUntilProcessed(12);
    expect(seen.map(([, position]) => position)).toEqual(numbers(1, 12));
    expect(seen.slice(-2).map(([who]) => who)).toEqual(["other", "other"]);
  });

  test("a batch has at most the given size, and holds only events that match", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    await append(store, 1, 12);
    const sizes: number[] = [];
    const handler = async (events: readonly unknown[]): Promise<void> => void sizes.push(events.length);
    await using consumer = store.consume("mailer", { types: ["odd"] }, handler, { batch: 4 });
    await consumer.waitUntilProcessed(12);
    expect(sizes).toEqual([4, 2]);
  });
});

test("a handler that throws ends the consumer with that error, and the next consumer gets the batch again", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await append(store, 1, 4);
  const seen: number[][] = [];
  const failure = new Error("no mail today");
  const failing = store.consume(
    "mailer",
    "all",
    async (events) => {
      seen.push(events.map(({ position }) => position));
      if (events.some(({ position }) => position === 3)) throw failure;
    },
    { batch: 2 },
  );
  await expect(failing.done).rejects.toBe(failure);
  expect(await failing.position()).toBe(2);
  await using again = store.consume(
    "mailer",
    "all",
    async (events) => void seen.push(events.map(({ position }) => position)),
    { batch: 2 },
  );
  await again.waitUntilProcessed(4);
  expect(seen).toEqual([
    [1, 2],
    [3, 4],
    [3, 4],
  ]);
});

test.each(kinds)(
  'an event that is appended after the call comes after "head", on %s, also without a wait in between',
  async (kind) => {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    await append(store, 1, 3);
    const seen: number[] = [];
    await using consumer = store.consume("sendMails", "all", async ([event]) => void seen.push(event!.position), {
      from: "head",
    });
    await append(store, 4, 4);
    await consumer.waitUntilProcessed(4);
    expect(seen).toEqual([4]);
  },
);

test('an event that is appended after the call comes after "head", also when reading the head takes long', async () => {
  const world = await LogWorld.make();
  let isSlow = false;
  const tamper = (ports: Ports): Ports =>
    withDisk(ports, {
      open: async (path, mode) => {
        const file = await ports.disk.open(path, mode);
        if (!path.endsWith("/head")) return file;
        const read = file.read.bind(file);
        file.read = async (offset, length) => {
          if (isSlow) {
            isSlow = false;
            // Time passes: this makes the read slow.
            await ports.clock.sleep(50);
          }
          return await read(offset, length);
        };
        return file;
      },
    });
  const store = await world.open<Counted>({ tamper });
  await append(store, 1, 3);
  isSlow = true;
  const seen: number[] = [];
  await using consumer = store.consume("mailer", "all", async ([event]) => void seen.push(event!.position), {
    from: "head",
  });
  await append(store, 4, 4);
  await consumer.waitUntilProcessed(4);
  expect(seen).toEqual([4]);
});

test('a new name starts at `from`; "head" means the head at the call', async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await append(store, 1, 3);
  const seen: Record<string, number[]> = { late: [], middle: [] };
  await using late = store.consume("late", "all", async ([event]) => void seen.late!.push(event!.position), {
    from: "head",
  });
  expect(await late.position()).toBe(3);
  await using middle = store.consume("middle", "all", async ([event]) => void seen.middle!.push(event!.position), {
    from: 2,
  });
  await append(store, 4, 5);
  await Promise.all([late.waitUntilProcessed(5), middle.waitUntilProcessed(5)]);
  expect(seen).toEqual({ late: [4, 5], middle: [3, 4, 5] });
  await expect(store.consume("far", "all", async () => undefined, { from: 9 }).done).rejects.toThrow(RangeError);
});

test("events that do not match count as processed, and cause few checkpoints", async () => {
  const world = await LogWorld.make();
  let links = 0;
  const tamper = (ports: Ports): Ports =>
    withDisk(ports, {
      link: async (from, to) => {
        if (to.includes("/consumers/")) links++;
        await ports.disk.link(from, to);
      },
    });
  const [store, writer] = [await world.open<Counted>({ tamper }), await world.open<Counted>()];
  await using consumer = store.consume("mailer", { types: ["even"] }, async () => undefined);
  await consumer.position();
  const before = links;
  for (let round = 0; round < 100; round++) await writer.append(counted(1));
  await consumer.waitUntilProcessed(100);
  expect(await consumer.position()).toBe(100);
  expect(links - before).toBeLessThan(10);
});

test("stop waits for the batch in hand, which then counts", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await append(store, 1, 3);
  let finish: () => void = () => undefined;
  const began = vi.fn<() => void>();
  const consumer = store.consume("mailer", "all", async () => {
    began();
    await new Promise<void>((resolve) => (finish = resolve));
  });
  await vi.waitFor(() => expect(began).toHaveBeenCalledOnce());
  const stopped = consumer.stop();
  setImmediate(finish);
  await stopped;
  await consumer.done;
  expect(began).toHaveBeenCalledOnce();
  expect(await consumer.position()).toBe(1);
});

test("stop lets go of a handler that does not end, and another process takes the batch", async () => {
  const world = await LogWorld.make();
  const [store, other] = [await world.open<Counted>(), await world.open<Counted>()];
  await append(store, 1, 1);
  const began = vi.fn<() => void>();
  const stuck = store.consume("mailer", "all", async () => {
    began();
    await new Promise(() => undefined);
  });
  await vi.waitFor(() => expect(began).toHaveBeenCalledOnce());
  await stuck.stop({ drainMs: 20 });
  await stuck.done;
  await using next = other.consume("mailer", "all", async () => undefined);
  await next.waitUntilProcessed(1);
});

test("the signal stops a consumer, and `done` resolves", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  const stop = new AbortController();
  const consumer = store.consume("mailer", "all", async () => undefined, { signal: stop.signal });
  await append(store, 1, 1);
  await consumer.waitUntilProcessed(1);
  stop.abort(new Error("enough"));
  await consumer.done;
});

test("a wait for a position can be aborted, and rejects with the signal's reason", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await using consumer = store.consume("mailer", "all", async () => undefined);
  const stop = new AbortController();
  const waiting = consumer.waitUntilProcessed(1, { signal: stop.signal });
  const reason = new Error("enough");
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});

test("closing the store ends every wait", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  const consumer = store.consume("mailer", "all", async () => undefined);
  const waiting = consumer.waitUntilProcessed(1);
  await consumer.position();
  await store.close();
  await expect(waiting).rejects.toMatchObject({ code: "CLOSED" });
  await expect(store.consume("mailer", "all", async () => undefined).done).rejects.toMatchObject({ code: "CLOSED" });
});

test("wrong names and options are refused at once", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  const handler = async (): Promise<void> => undefined;
  expect(() => store.consume("", "all", handler)).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
  expect(() => store.consume("mailer", "all", handler, { batch: 0 })).toThrow(RangeError);
  expect(() => store.consume("mailer", "all", handler, { from: -1 })).toThrow(RangeError);
  expect(() => store.consume("mailer", [], handler)).toThrow(TypeError);
});

test("a log that was replaced is not taken for the one that was consumed", async () => {
  const world = await LogWorld.make("disk");
  const before = await world.open<Counted>();
  await append(before, 1, 3);
  const consumer = before.consume("mailer", "all", async () => undefined);
  await consumer.waitUntilProcessed(3);
  await before.close();
  for (const name of await readdir(world.directory))
    if (!["consumers", ".holdfast"].includes(name)) await rm(join(world.directory, name), { recursive: true });
  const after = await world.open<Counted>();
  await append(after, 4, 5);
  const rewound = expect.objectContaining({ code: "LOG_REWOUND", position: 3 });
  // The new log is shorter, and then as long.
  await expect(after.consume("mailer", "all", async () => undefined).done).rejects.toEqual(rewound);
  await append(after, 6, 9);
  await expect(after.consume("mailer", "all", async () => undefined).done).rejects.toEqual(rewound);
});

test("a removed ground does not stop consumers, although fences count from the start again", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await append(store, 1, 4);
  const { ground, directory } = accessOf(store);
  const options = { ground: "that was removed", sequence: workOn(accessOf(store)).sequence };
  const checkpoints = await Checkpoints.open(ground, `${directory}/consumers/mailer`, options);
  await checkpoints.begin(0);
  // The removed ground had given out high fences.
  const leased = await checkpoints.take(10 ** 12);
  await leased?.save(3);
  const seen: number[] = [];
  await using consumer = store.consume("mailer", "all", async ([event]) => void seen.push(event!.position));
  await consumer.waitUntilProcessed(4);
  expect(seen).toEqual([4]);
  // A worker of the removed ground that slept since comes too late.
  expect(await leased?.save(2)).toBe(false);
});

test("a process that slept past its lease stops, its late checkpoint does not count, and it waits for the next lease", async () => {
  const world = await LogWorld.make();
  let sleptMs = 0;
  // A process that was stopped sees its clock jump.
  const tamper = (ports: Ports): Ports => ({
    ...ports,
    clock: {
      wallMs: () => ports.clock.wallMs() + sleptMs,
      monotonicMs: () => ports.clock.monotonicMs(),
      sleep: (ms, options) => ports.clock.sleep(ms, options),
      alarm: (ms, ring) => ports.clock.alarm(ms, ring),
    },
    // A sleeping process sends no heartbeat.
    heart: { start: () => ({ lastBeat: () => ({ monotonicMs: 0, wallMs: 0 }), stop: async () => undefined }) },
  });
  const [sleeper, other] = [
    await world.open<Counted>({ leaseMs: 400, tamper }),
    await world.open<Counted>({ leaseMs: 400 }),
  ];
  await append(other, 1, 1);
  const seen: string[] = [];
  let wakeUp: () => void = () => undefined;
  const first = sleeper.consume("mailer", "all", async ([event]) => {
    seen.push(`sleeper ${event?.position}`);
    if (event?.position === 1) await new Promise<void>((resolve) => (wakeUp = resolve));
  });
  await vi.waitFor(() => expect(seen).toEqual(["sleeper 1"]));
  sleptMs = 10_000;
  const second = other.consume("mailer", "all", async ([event]) => void seen.push(`other ${event?.position}`));
  await append(other, 2, 3);
  await second.waitUntilProcessed(3);
  wakeUp();
  sleptMs = 0;
  await vi.waitFor(async () => expect(await first.position()).toBe(3));
  expect(seen).toEqual(["sleeper 1", "other 1", "other 2", "other 3"]);
  await second.stop();
  await append(other, 4, 4);
  await first.waitUntilProcessed(4);
  expect(seen.at(-1)).toBe("sleeper 4");
  await first.stop();
  await first.done;
});

test.each(["epoch", "0.begin.", ".take.0", ".save.1"])(
  "a process that sleeps past its lease while it stages a checkpoint (%s) goes on with its next session",
  async (what) => {
    // The directory of the process was swept, and the failed write there once ended the consumer.
    const world = await LogWorld.make();
    const sleep = new SleepWhileStaging((record) => record.includes('"checkpoint') && record.includes(what));
    const store = await world.open<Counted>({ tamper: (ports) => sleep.tamper(ports) });
    const other = await world.open<Counted>();
    await append(other, 1, 3);
    const seen: number[] = [];
    const consumer = store.consume("mailer", "all", async ([event]) => void seen.push(event!.position));
    await Promise.race([consumer.waitUntilProcessed(3), consumer.done]);
    expect(seen).toEqual([1, 2, 3]);
    expect(sleep.staged).toBeGreaterThan(1);
    await consumer.stop();
    await consumer.done;
  },
);

test("closing the store right after an append stops an idle consumer and an idle projection without a failure", async () => {
  // The append woke them, they met the closing store before they were stopped, and once took that
  // for a failure.
  for (const kind of kinds) {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    await append(store, 1, 1);
    const consumer = store.consume("mailer", "all", async () => undefined);
    const projection = await openProjection(store, { name: "last", query: "all", key: () => "last", apply: () => 1 });
    const running = projection.run();
    await Promise.all([consumer.waitUntilProcessed(1), projection.waitUntilProcessed(1)]);
    // Time passes: until both are idle. If they are not, they must not fail either.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await store.append(counted(2));
    await store.close();
    await consumer.done;
    await running.done;
  }
});

test("closing the store waits for the batch in hand, which then counts", async () => {
  const world = await LogWorld.make();
  const [store, other] = [await world.open<Counted>(), await world.open<Counted>()];
  await append(store, 1, 2);
  let finish: () => void = () => undefined;
  const began = vi.fn<() => void>();
  const consumer = store.consume("mailer", "all", async () => {
    began();
    await new Promise<void>((resolve) => (finish = resolve));
  });
  await vi.waitFor(() => expect(began).toHaveBeenCalledOnce());
  const closed = store.close();
  setImmediate(finish);
  await closed;
  await consumer.done;
  await using next = other.consume("mailer", "all", async () => await new Promise(() => undefined));
  expect(await next.position()).toBe(1);
  await next.stop({ drainMs: 0 });
});
