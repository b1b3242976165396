// Pages of tickets, and tickets that nobody needs any more.
import { describe, expect, it } from "vitest";
import { boxSites } from "./consume/boxes.ts";
import { listOf } from "../sites/event-logs.ts";

describe.each(boxSites)("on %s", (_name, make) => {
  it("pages of a list have every ticket once, from either end", async () => {
    const box = await (await make()).open();
    for (const key of ["a", "b", "c", "d", "e"]) {
      await box.publish({ "f.txt": key }, { key, group: key < "d" ? "one" : "two" });
      await using delivery = await box.take();
      await delivery?.fail("no paper");
    }
    const keys = async (options: object): Promise<string[]> =>
      (await listOf(box.list("error", options))).map(({ key }) => key);
    const all = await keys({});
    expect([...all].sort()).toEqual(["a", "b", "c", "d", "e"]);
    expect(await keys({ backwards: true })).toEqual([...all].reverse());
    expect([
      ...(await keys({ limit: 2 })),
      ...(await keys({ skip: 2, limit: 2 })),
      ...(await keys({ skip: 4, limit: 2 })),
    ]).toEqual(all);
    const ofGroup = await keys({ group: "one" });
    expect(ofGroup).toHaveLength(3);
    expect(await keys({ group: "one", skip: 1 })).toEqual(ofGroup.slice(1));
  });

  it("a discarded dead letter is gone with its files, and its key can be published again", async () => {
    const box = await (await make()).open();
    for (const key of ["a", "b"]) {
      await box.publish({ "f.txt": "x".repeat(100_000) }, { key });
      await using delivery = await box.take();
      await delivery?.fail("no paper");
    }
    const first = await box.findByKey("a");
    expect(await box.discard({ from: "archive", id: first?.id })).toBe(0);
    expect(await box.discard({ from: "error", id: first?.id })).toBe(1);
    expect(await box.discard({ from: "error", id: first?.id })).toBe(0);
    expect(await box.find(first?.id ?? "")).toBeUndefined();
    expect(await box.publish({ "f.txt": "again" }, { key: "a" })).toMatchObject({ duplicate: false });
    expect(await box.discard({ from: "error" })).toBe(1);
    expect(await listOf(box.list("error"))).toEqual([]);
    await expect(box.discard({ from: "incoming" as "error" })).rejects.toThrow(TypeError);
    expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
  });
});
