// Failover to a standby by streaming replication with synchronous commit, and a standby that is read.
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { until } from "../../waiting.ts";
import { listOf } from "../../sites/event-logs.ts";
import { Proxy } from "../proxy.ts";
import { openPgStore, startOwnServer } from "../stores.ts";
import { describeHistory } from "./audit.ts";
import { promote, startStandby } from "./standby.ts";

const failovers = 3;

describeHistory(`${failovers} failovers to a standby`, {
  settings: ["wal_level=replica"],
  enough: 100,
  rage: async (world) => {
    const proxy = await Proxy.open(world.server.url);
    world.onOver(() => proxy.close());
    world.url = proxy.url;
    let standby = await startStandby(world.server);
    for (let count = 0; count < 3; count++) world.start();
    await world.ready();
    for (let failover = 1; failover <= failovers; failover++) {
      const { length } = world.report.events;
      // Acknowledged by both.
      await until(() => world.report.events.length > length + 50);
      await world.work(1_000);
      const end = world.outages.begin();
      const before = world.server;
      await before.kill("SIGKILL");
      await promote(standby);
      world.server = standby;
      proxy.leadTo(standby.url);
      end();
      rmSync(before.directory, { recursive: true, force: true });
      if (failover < failovers) standby = await startStandby(standby);
    }
  },
});

it("a standby answers reads of all four capabilities, and writes with NO_PERMISSION", async () => {
  // Acknowledged means that the standby shows it.
  const primary = await startOwnServer({ settings: ["synchronous_commit=remote_apply"] });
  onTestFinished(() => primary.stop());
  const standby = await startStandby(primary);
  onTestFinished(() => standby.stop());
  const name = randomUUID();
  const store = await openPgStore(name, { url: primary.url });
  await (await store.events()).append({ type: "Noted", data: 1 });
  await (await (await store.objects()).createBucket("bucket")).put("key", "body");
  const { id } = await (await store.handoff("box")).publish({ n: "1" });
  const hold = await (await store.locks()).acquire("path");

  const copy = await openPgStore(name, { url: standby.url });
  expect(copy.capabilities.warnings.join()).toMatch(/standby/);
  const [events, objects, box, locks] = [
    await copy.events(),
    await copy.objects(),
    await copy.handoff("box"),
    await copy.locks({ listOnly: true }),
  ];
  expect(await listOf(events.read())).toMatchObject([{ data: 1 }]);
  const bucket = await objects.bucket("bucket");
  expect(await (await bucket.get("key")).text()).toBe("body");
  expect((await bucket.list()).objects).toHaveLength(1);
  expect(await box.find(id)).toMatchObject({ state: "incoming" });
  expect(await box.stats()).toMatchObject({ incoming: 1 });
  expect(await locks.list()).toMatchObject([{ path: "path", holdId: hold.id }]);
  for (const write of [
    () => events.append({ type: "Noted", data: 2 }),
    () => bucket.put("key", "other"),
    () => bucket.delete("key"),
    () => box.publish({ n: "2" }),
    () => box.take(),
    () => locks.acquire("other"),
  ])
    await expect(write()).rejects.toMatchObject({ code: "NO_PERMISSION" });
});
