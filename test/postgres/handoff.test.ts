// Hand-off boxes on PostgreSQL: a part of the contract, and what operators do. All of the contract is
// in handoff.deep.ts.
import { describe, expect, it } from "vitest";
import type { Handoff } from "../../src/handoff/model/handoff.ts";
import { describeShortContract } from "../handoff/contract.ts";
import { failureOf, listOf, numbers } from "../sites/event-logs.ts";
import { makePgBoxes } from "./boxes.ts";

describeShortContract("PostgreSQL", makePgBoxes);

async function idsOf(box: Handoff, ...[state, options]: Parameters<Handoff["list"]>): Promise<string[]> {
  return (await listOf(box.list(state, options))).map(({ id }) => id);
}

describe("a box on PostgreSQL", () => {
  it("pages through tickets in both directions, by group and beyond a page", async () => {
    const box = await (await makePgBoxes()).open();
    const ids = (await listOf(box.publishMany(numbers(1, 130).map((n) => ({ files: { n: String(n) } }))))).map(
      ({ id }) => id,
    );
    const grouped = (
      await listOf(box.publishMany(numbers(1, 3).map((n) => ({ files: { n: String(n) }, group: "g" }))))
    ).map(({ id }) => id);
    const all = [...ids, ...grouped];
    expect(await idsOf(box, "incoming")).toEqual(all);
    expect(await idsOf(box, "incoming", { backwards: true })).toEqual([...all].reverse());
    expect(await idsOf(box, "incoming", { skip: 128, limit: 4 })).toEqual(all.slice(128, 132));
    expect(await idsOf(box, "incoming", { skip: 131 })).toEqual(all.slice(131));
    expect(await idsOf(box, "incoming", { group: "g" })).toEqual(grouped);
    await box.consume(async () => undefined, { concurrency: 32, idleMs: 0 }).done;
    expect(await idsOf(box, "archive", { skip: 60, limit: 70 })).toHaveLength(70);
    expect(new Set(await idsOf(box, "archive"))).toEqual(new Set(all));
  });

  it("replays and discards what ended, finds it by key, and counts it", async () => {
    const site = await makePgBoxes();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" }, { key: "k" });
    const waiting = (await site.open()).waitFor(id);
    await (await box.take())?.ack("first");
    expect(await waiting).toMatchObject({ id, state: "archive", result: "first" });
    expect(await box.findByKey("k")).toMatchObject({ id, key: "k", attempt: 1 });
    expect(await box.replay({ from: "archive", id })).toBe(1);
    await (await box.take())?.fail("no");
    expect(await box.find(id)).toMatchObject({ state: "error", attempt: 2, outputs: [] });
    expect(await box.replay({ from: "error" })).toBe(1);
    expect((await box.take())?.attempt).toBe(1);
    expect(await box.stats()).toMatchObject({ processing: 1, holders: 1, paused: false });
    expect(await box.discard({ from: "error" })).toBe(0);
  });

  it("discards a dead letter with its key, and an archived ticket without it", async () => {
    const site = await makePgBoxes();
    const box = await site.open();
    await box.publish({ a: "x".repeat(70_000) }, { key: "failed" });
    await (await box.take())?.fail("no");
    await box.publish({ a: "1" }, { key: "done" });
    await (await box.take())?.ack();
    expect(await box.discard({ from: "error" })).toBe(1);
    expect(await box.discard({ from: "archive" })).toBe(1);
    expect(await site.stored()).toEqual(["key done"]);
    expect(await box.publish({ a: "1" }, { key: "done" })).toMatchObject({ duplicate: true });
    expect(await box.publish({ a: "1" }, { key: "failed" })).toMatchObject({ duplicate: false });
  });

  it("collects what is older than its retention, and then the key", async () => {
    const site = await makePgBoxes();
    const box = await site.open({ retention: { archiveMs: 0, ledgerMs: 0 } });
    await box.publish({ a: "1" }, { key: "k" });
    const delivery = await box.take();
    await delivery?.output("o", "2");
    await delivery?.ack();
    expect(await box.collect()).toEqual({ tickets: 1, bytes: 1 });
    expect(await site.stored()).toEqual([]);
    expect(await box.publish({ a: "1" }, { key: "k" })).toMatchObject({ duplicate: false });
  });

  it("pauses the consumers of all processes, and resumes", async () => {
    const site = await makePgBoxes();
    const [box, worker] = [await site.open(), await site.open()];
    await box.publish({ a: "1" });
    await box.pause("stocktaking");
    expect(await worker.take()).toBeUndefined();
    const reasons: unknown[] = [];
    const consumer = worker.consume(async () => undefined, { idleMs: 200, onPause: (reason) => reasons.push(reason) });
    await consumer.done;
    expect(reasons).toEqual(["stocktaking"]);
    expect(await box.stats()).toMatchObject({ incoming: 1, paused: true, pauseReason: "stocktaking" });
    await box.resume();
    expect(await worker.take({ waitMs: 60_000 })).toBeDefined();
  });

  it("a parked claim is continued by another process, blocks its group, and returns in time", async () => {
    const site = await makePgBoxes();
    const [box, other] = [await site.open(), await site.open()];
    await listOf(box.publishMany([1, 2].map((n) => ({ files: { n: String(n) }, group: "g" }))));
    const parked = await box.takeParked(60_000);
    expect(await site.readAt(parked!.paths["n"]!)).toBe("1");
    expect(await other.take()).toBeUndefined();
    const delivery = await other.resumeParked(parked!.claim);
    expect(delivery).toMatchObject({ id: parked!.id, attempt: 1 });
    await delivery.ack();
    expect(await failureOf(site.readAt(parked!.paths["n"]!))).toMatchObject({ code: "ENOENT" });
    expect(await failureOf(other.resumeParked(parked!.claim))).toMatchObject({ code: "CLAIM_LOST" });
    const second = await box.takeParked(1);
    expect((await other.take({ waitMs: 60_000 }))?.id).toBe(second!.id);
    expect((await box.find(second!.id))?.history).toMatchObject([{ attempt: 1, outcome: "lost" }]);
  });

  it("the outputs of a claim that a crash of the server took back are removed", async () => {
    const site = await makePgBoxes();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" });
    const delivery = await box.take();
    await delivery?.output("o", "2");
    await (await site.database()).query("update hf_ticket set serial = -1 where p = $1", [await site.part()]);
    expect(await failureOf(delivery!.ack())).toMatchObject({ code: "CLAIM_LOST" });
    expect(await site.stored()).toEqual([`ticket ${id}`]);
  });

  it("acknowledgements that share a commit succeed or fail one by one", async () => {
    const site = await makePgBoxes();
    const box = await site.open();
    const [p, database] = [await site.part(), await site.database()];
    await listOf(box.publishMany(["kept", "lost", "again", "kept too"].map((key) => ({ files: { a: key }, key }))));
    const taken = (await Promise.all(numbers(1, 4).map(() => box.take()))).map((delivery) => delivery!);
    const [, lost, again] = taken;
    await database.query("update hf_ticket set serial = -1 where p = $1 and id = $2", [p, lost!.id]);
    await database.query(
      `insert into hf_done (p, key, replays, id, claims, holder, serial, result)
         select p, key, replays, 'another', 1, '', 0, '{"result":"first"}' from hf_ticket where p = $1 and id = $2`,
      [p, again!.id],
    );
    for (const batch of [taken.slice(0, 2), taken.slice(2)]) {
      const answers = await Promise.allSettled(batch.map((delivery) => delivery.ack("second")));
      const failed = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as unknown] : []));
      expect(failed).toMatchObject(batch.includes(lost!) ? [{ code: "CLAIM_LOST", id: lost!.id }] : []);
    }
    const found = await Promise.all(taken.map(({ id }) => box.find(id)));
    expect(found).toMatchObject([
      { state: "archive", result: "second", duplicate: false },
      { state: "processing" },
      { state: "archive", result: "first", duplicate: true },
      { state: "archive", result: "second", duplicate: false },
    ]);
  });

  it("refuses publishes and claims beyond its limits", async () => {
    const site = await makePgBoxes();
    const box = await site.open({ limits: { tickets: 2, bytes: 1000, inFlight: 1 } });
    await listOf(box.publishMany([1, 2].map(() => ({ files: { a: "1" } }))));
    expect(await failureOf(box.publish({ a: "1" }))).toMatchObject({ code: "RESOURCE_BUSY" });
    expect(
      await failureOf((await site.open({ limits: { bytes: 1000 } })).publish({ a: "x".repeat(1001) })),
    ).toMatchObject({
      code: "TOO_LARGE",
    });
    const rival = await site.open({ limits: { inFlight: 1 } });
    const first = await box.take();
    expect(await rival.take()).toBeUndefined();
    await first?.ack();
    expect(await rival.take()).toBeDefined();
  });

  it("refuses what only a folder supports", async () => {
    const box = await (await makePgBoxes()).open();
    const refused = { code: "UNSUPPORTED", location: box.directory };
    expect(await failureOf(box.adopt("/tmp", { include: "*" } as never))).toMatchObject({ ...refused, what: "adopt" });
    expect(await failureOf(box.export("/tmp"))).toMatchObject({ ...refused, what: "export" });
    await box.publish({ a: "1" });
    expect(await failureOf((await box.take())!.send({ directory: "/tmp/box" }, { a: "1" }))).toMatchObject(refused);
  });

  it("verify reports what is damaged, and mends lanes", async () => {
    const site = await makePgBoxes();
    const box = await site.open();
    const { id } = await box.publish({ a: "x".repeat(70_000) });
    await box.publish({ a: "1" }, { group: "g" });
    expect(await box.verify()).toEqual({ ok: true, checked: 2, problems: [] });
    await site.spoilPayload(id, "other");
    await (await site.database()).query("update hf_lane set ready = null where p = $1", [await site.part()]);
    const report = await box.verify({ repair: true });
    expect(report.ok).toBe(false);
    expect(report.problems).toMatchObject([
      { severity: "damage", what: expect.stringContaining("5 instead of 70000 bytes") as string, repaired: false },
      { severity: "damage", what: expect.stringContaining("lane") as string, repaired: true },
    ]);
    expect((await box.take())?.group).toBe("g");
  });
});
