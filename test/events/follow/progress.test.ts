// Waits for a position: they end when the position was processed in this log, and not before, or
// with the reason why not.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { LogWorld } from "./log-world.ts";

type Counted = NewEvent<"Counted", { number: number }>;

function counted(first: number, last: number): Counted[] {
  return Array.from({ length: last - first + 1 }, (_each, index) => ({
    type: "Counted",
    data: { number: first + index },
  }));
}

const nothing = async (): Promise<void> => undefined;

function sums(apply: (number: number) => void = () => undefined): ProjectionDefinition<number, Counted> {
  return {
    name: "sums",
    query: "all",
    key: () => "sum",
    apply: (sum = 0, { data }) => {
      apply(data.number);
      return sum + data.number;
    },
  };
}

/** Restores a backup from before the first append. */
async function restoreEmpty({ directory }: LogWorld): Promise<void> {
  for (const name of await readdir(directory))
    if (!["consumers", "projections", ".holdfast"].includes(name)) await rm(join(directory, name), { recursive: true });
}

test("a wait for a value that is no position is refused", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  await using consumer = store.consume("mailer", "all", nothing);
  const projection = await openProjection(store, sums());
  for (const wrong of [NaN, undefined, -1, 0.5, Infinity, "1"])
    for (const following of [consumer, projection])
      await expect(following.waitUntilProcessed(wrong as number)).rejects.toThrow(RangeError);
  await projection.waitUntilProcessed(0);
});

test("the checkpoint from before a restore does not count for events that are appended after it", async () => {
  // The old checkpoint was beyond the new position, so the wait once ended at once.
  const world = await LogWorld.make("disk");
  const before = await world.open<Counted>();
  await before.append(counted(1, 5));
  const old = await openProjection(before, sums());
  old.run();
  await Promise.all([before.consume("mailer", "all", nothing).waitUntilProcessed(5), old.waitUntilProcessed(5)]);
  await before.close();
  await restoreEmpty(world);
  const after = await world.open<Counted>();
  const projection = await openProjection(after, sums());
  const rewound = { code: "LOG_REWOUND", position: 5 };
  // The new log is shorter than the old one, and then longer.
  for (const [first, last] of [
    [6, 6],
    [7, 13],
  ] as const) {
    const appended = await after.append(counted(first, last));
    const consumer = after.consume("mailer", "all", nothing);
    const waiting = [consumer.waitUntilProcessed(appended.first), projection.waitUntilProcessed(appended.first)];
    for (const each of [...waiting, consumer.done]) each.catch(() => undefined);
    for (const each of [...waiting, consumer.done]) await expect(each).rejects.toMatchObject(rewound);
  }
  await projection.rebuild();
  await projection.waitUntilProcessed(8);
});

test("a wait rejects with the failure of its consumer, unless the position was processed before", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  const failure = new Error("no mail today");
  const consumer = store.consume("mailer", "all", async ([event]) => {
    if (event?.position === 2) throw failure;
  });
  const waiting = consumer.waitUntilProcessed(3);
  await store.append(counted(1, 3));
  await expect(waiting).rejects.toBe(failure);
  await expect(consumer.done).rejects.toBe(failure);
  await consumer.waitUntilProcessed(1);
  await expect(consumer.waitUntilProcessed(2)).rejects.toBe(failure);
  await using again = store.consume("mailer", "all", nothing);
  await again.waitUntilProcessed(3);
});

test("a wait for a projection rejects with the failure of its run, until it runs again", async () => {
  const world = await LogWorld.make();
  const store = await world.open<Counted>();
  const failure = new Error("cannot be summed");
  let isBroken = true;
  const projection = await openProjection(
    store,
    sums((number) => {
      if (isBroken && number === 2) throw failure;
    }),
  );
  const running = projection.run();
  await store.append(counted(1, 1));
  await projection.waitUntilProcessed(1);
  const waiting = projection.waitUntilProcessed(2);
  await store.append(counted(2, 2));
  await expect(waiting).rejects.toBe(failure);
  await expect(running.done).rejects.toBe(failure);
  isBroken = false;
  await using _running = projection.run();
  await projection.waitUntilProcessed(2);
  expect(await projection.get("sum")).toBe(3);
});
