// An older copy of the folder under a process that goes on: on a local disk nothing is put behind a
// gap.
import { describe, expect, it } from "vitest";
import { sites } from "../sites/sites.ts";
import { filesIn, objectsOn, textOf, versionsOf } from "./object-sites.ts";

const locals = sites.filter(([name]) => !name.includes("network"));

describe.each(locals)("a key that was restored on %s", (_name, make) => {
  it("continues after its newest entry, even in a process that remembers newer ones", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    const bucket = await store.createBucket("photos", { versioning: "enabled" });
    const { disk } = await site.openPorts();
    for (const text of ["one", "two", "three", "four"]) await bucket.put("cat", text);
    expect(await versionsOf(bucket, "cat")).toHaveLength(4);
    const slots = (await filesIn(disk, `${site.directory}/objects`)).filter((path) => path.includes("cat~"));
    for (const path of slots.sort().slice(2)) await disk.unlink(path);
    expect(await textOf(bucket, "cat")).toBe("two");
    await bucket.put("cat", "five");
    for (const path of slots.slice(2)) expect([path, await disk.canOpen(path)]).toEqual([path, path === slots[2]]);
    expect(await versionsOf(bucket, "cat")).toEqual(["five", "two", "one"]);
    expect(await versionsOf(await (await site.open()).bucket("photos"), "cat")).toEqual(["five", "two", "one"]);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });
});
