// Claims that outlive their process: parked by one, settled by another, and given back when their time is over.
import { describe, expect, it } from "vitest";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { boxSites, openBoxOn, statesOf } from "./boxes.ts";

const minuteMs = 60_000;

describe.each(boxSites)("on %s", (_site, make) => {
  it("a claim that one process has parked is acknowledged by another, once", async () => {
    const { directory, site, open } = await make();
    const first = await open();
    const { id } = await first.publish({ "a.txt": "one" }, { key: "order 1" });
    const parked = await first.takeParked(minuteMs);
    expect(parked).toMatchObject({ id, attempt: 1, claim: `${id}-1`, key: "order 1" });
    await first.close();
    const { disk } = await site.openPorts();
    expect(await statesOf(disk, directory)).toEqual({ parked: [expect.stringMatching(`^[0-9]{16}-${id}-1.json$`)] });
    expect(Buffer.from(await disk.readFile(parked!.paths["a.txt"]!, 100)).toString()).toBe("one");
    const second = await open();
    expect(await second.take()).toBeUndefined();
    const delivery = await second.resumeParked(id);
    expect(delivery.attempt).toBe(1);
    await delivery.ack("done");
    expect(await statesOf(disk, directory)).toEqual({ archive: [`${id}-1.json`] });
    expect(await failureOf(second.resumeParked(parked!.claim))).toMatchObject({ code: "CLAIM_LOST", id });
    const box = await openBoxOn(await site.openPorts(), directory);
    const entry = await findCommitted(box, box.layout.ledger("order 1", 0));
    expect(entry?.committed).toMatchObject({ id, claims: 1, result: "done" });
  });

  it("a parked ticket returns when it is due, and its former claim is gone", async () => {
    const { open } = await make();
    const [taker, worker] = [await open(), await open()];
    const { id } = await taker.publish({ "a.txt": "one" });
    const parked = await taker.takeParked(1);
    const delivery = await worker.take({ waitMs: 20_000 });
    expect(delivery).toMatchObject({ id, attempt: 2 });
    expect(await failureOf(taker.resumeParked(parked!.claim))).toMatchObject({ code: "CLAIM_LOST" });
    const reason = `It was parked until ${parked!.dueAt.toISOString()}, and no process settled it.`;
    expect((await worker.find(id))?.history).toMatchObject([{ attempt: 1, outcome: "lost", reason }]);
    await delivery!.ack();
  });

  it("a claim is not confused with a later one of the same ticket", async () => {
    const { open } = await make();
    const box = await open();
    await box.publish({ "a.txt": "one" });
    const first = await box.takeParked(minuteMs);
    await (await box.resumeParked(first!.claim)).retry();
    const second = await box.takeParked(minuteMs, { waitMs: 20_000 });
    expect(second!.claim).not.toBe(first!.claim);
    expect(await failureOf(box.resumeParked(first!.claim))).toMatchObject({ code: "CLAIM_LOST" });
    await (await box.resumeParked(second!.claim)).ack();
  });

  it("a parked ticket of a group blocks those behind it, and returns to its position", async () => {
    const { open } = await make();
    const [taker, worker] = [await open(), await open()];
    const ids: string[] = [];
    for (const text of ["one", "two"]) ids.push((await taker.publish({ "a.txt": text }, { group: "g" })).id);
    expect(await taker.takeParked(minuteMs)).toMatchObject({ id: ids[0] });
    expect(await worker.take()).toBeUndefined();
    await (await worker.resumeParked(ids[0]!)).retry();
    const again = await worker.take({ waitMs: 20_000 });
    expect(again).toMatchObject({ id: ids[0], attempt: 2 });
    await again!.ack();
    const next = await worker.take({ waitMs: 20_000 });
    expect(next).toMatchObject({ id: ids[1], attempt: 1 });
    await next!.ack();
  });
});
