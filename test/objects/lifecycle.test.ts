// Lifecycle rules: what is due goes with a collection, at its time and not before, and nothing that
// is retained.
import { describe, expect, it } from "vitest";
import { Buckets } from "../../src/objects/bucket/buckets.ts";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { Collector } from "../../src/objects/collect/collect.ts";
import { checkLifecycle, dueOf, type AgingVersion } from "../../src/objects/model/lifecycle.ts";
import type { LifecycleRule } from "../../src/objects/model/object.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { sites } from "../sites/sites.ts";
import { dayMs, describeLifecycle } from "./contract/lifecycle.ts";
import { codeOf, objectsOn, smallInline, textOf, versionsOf, type ObjectSite } from "./object-sites.ts";

/** Collects as a process whose clock is ahead by so many days; `meanwhile` happens before its first link. */
async function collectAfter(site: ObjectSite, days: number, meanwhile?: () => Promise<unknown>): Promise<number> {
  const ports = await site.openPorts();
  const disk = meanwhile === undefined ? ports.disk : interrupted(ports.disk, meanwhile);
  const clock: Ports["clock"] = Object.assign(Object.create(ports.clock) as Ports["clock"], {
    wallMs: () => ports.clock.wallMs() + days * dayMs,
    monotonicMs: () => ports.clock.monotonicMs(),
    sleep: (ms: number, options?: object) => ports.clock.sleep(ms, options),
    alarm: (ms: number, ring: () => void) => ports.clock.alarm(ms, ring),
  });
  const { storage, ownsGround } = await openStorage({ ...ports, disk, clock }, `${site.directory}/objects`);
  try {
    return (await new Collector(storage, new Buckets(storage)).collect()).objects;
  } finally {
    if (ownsGround) await storage.ground.close();
  }
}

/** A disk on which something happens right before the first link of an entry. */
function interrupted(disk: Disk, meanwhile: () => Promise<unknown>): Disk {
  let happening: Promise<unknown> | undefined;
  const link: Disk["link"] = async (from, to) => {
    if (to.includes("/keys/")) await (happening ??= meanwhile());
    await disk.link(from, to);
  };
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "link") return link;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

for (const [name, make] of sites)
  describeLifecycle(name, async () => {
    const site = await objectsOn(make);
    return {
      open: (options) => site.open(options),
      nowMs: async () => (await site.openPorts()).clock.wallMs(),
      collectAfter: (days) => collectAfter(site, days),
    };
  });

describe.each(sites)("lifecycle rules in a folder on %s", (_name, make) => {
  it("a version that becomes current while a rule is applied stays, and a concurrent delete adds no second marker", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    await bucket.setConfig({
      lifecycle: [
        { prefix: "old/", noncurrent: { days: 1 } },
        { prefix: "new/", expireDays: 1 },
      ],
    });
    await bucket.put("old/cat", "one");
    const { versionId } = await bucket.put("old/cat", "two");
    await collectAfter(site, 2, () => bucket.delete("old/cat", { versionId }));
    expect(await versionsOf(bucket, "old/cat")).toEqual(["one"]);
    await bucket.put("new/cat", "one");
    await collectAfter(site, 2, () => bucket.delete("new/cat"));
    // It was deleted by its user, and no rule has added a second mark.
    expect(await versionsOf(bucket, "new/cat")).toEqual(["(marker)", "one"]);
  });

  it("incomplete uploads are aborted, and parts that no completion named are removed", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
    await bucket.setConfig({ lifecycle: [{ prefix: "big/", abortUploadsDays: 7 }] });
    const [left, other, done] = [
      await bucket.createUpload("big/left"),
      await bucket.createUpload("other"),
      await bucket.createUpload("big/done"),
    ];
    for (const upload of [left, other]) await upload.put(1, "part");
    await done.put(1, "first try");
    const part = await done.put(1, "second try");
    await done.put(2, "never named");
    await done.complete([part]);
    const { disk } = await site.openPorts();
    const bodies = async (id: string): Promise<number> =>
      (await disk.list(`${await uploadsOf(site)}/${id}`)).filter((name) => name.startsWith("b")).length;
    expect(await bodies(done.id)).toBe(3);
    await collectAfter(site, 6);
    expect((await bucket.listUploads()).uploads.map(({ key }) => key)).toEqual(["big/left", "other"]);
    expect(await bodies(done.id)).toBe(1);
    await collectAfter(site, 8);
    expect((await bucket.listUploads()).uploads.map(({ key }) => key)).toEqual(["other"]);
    expect(await codeOf(left.put(2, "late"))).toBe("NO_SUCH_UPLOAD");
    expect(await disk.list(await uploadsOf(site))).not.toContain(left.id);
    expect(await textOf(bucket, "big/done")).toBe("second try");
  });
});

async function uploadsOf({ openPorts, directory }: ObjectSite): Promise<string> {
  const { disk } = await openPorts();
  const bucket = `${directory}/objects/buckets/photos`;
  const incarnation = (await disk.list(bucket)).find((name) => name !== "config");
  return `${bucket}/${incarnation}/uploads`;
}

describe("what is due in a key", () => {
  const at = (days: number, facts: Partial<AgingVersion> = {}): AgingVersion => ({
    atMs: days * dayMs,
    isMarker: false,
    bytes: 100,
    tags: {},
    ...facts,
  });
  const due = (rule: LifecycleRule, versions: readonly AgingVersion[], nowDays: number): object =>
    dueOf([rule], "logs/1", versions, nowDays * dayMs);

  it("counts the age of a noncurrent version from its successor, and of the current one from itself", () => {
    const versions = [at(0), at(10), at(20)];
    expect(due({ noncurrent: { days: 5 } }, versions, 16)).toEqual({ isExpired: false, removals: [0] });
    expect(due({ noncurrent: { days: 5 } }, versions, 25)).toEqual({ isExpired: false, removals: [0, 1] });
    expect(due({ noncurrent: { keep: 1 } }, versions, 20)).toEqual({ isExpired: false, removals: [0] });
    expect(due({ expireDays: 5 }, versions, 24.9)).toEqual({ isExpired: false, removals: [] });
    expect(due({ expireDays: 5 }, versions, 25)).toEqual({ isExpired: true, removals: [] });
  });

  it("expires an object at the beginning of a day, or from a given moment on", () => {
    expect(due({ expireDays: 1 }, [at(0.5)], 1.9)).toMatchObject({ isExpired: false });
    expect(due({ expireDays: 1 }, [at(0.5)], 2)).toMatchObject({ isExpired: true });
    expect(due({ expireAtMs: 3 * dayMs }, [at(2.5)], 2.9)).toMatchObject({ isExpired: false });
    expect(due({ expireAtMs: 3 * dayMs }, [at(2.5)], 3)).toMatchObject({ isExpired: true });
  });

  it("depends on size, which delete markers lack", () => {
    const sizes = [at(0, { bytes: 10 }), at(1, { bytes: 11 }), at(2, { isMarker: true, bytes: 0 })];
    const noncurrent = { days: 1 };
    expect(due({ bytesAbove: 10, noncurrent }, sizes, 9)).toMatchObject({ removals: [1] });
    expect(due({ bytesBelow: 11, noncurrent }, sizes, 9)).toMatchObject({ removals: [0] });
    expect(due({ bytesBelow: 11, expireDays: 1 }, sizes.slice(2), 9)).toEqual({ isExpired: false, removals: [] });
  });

  it("depends on prefix and tags; delete markers have no tags", () => {
    const tagged = [at(0, { tags: { kind: "temp", by: "me" } }), at(1, { isMarker: true })];
    expect(due({ prefix: "notes/", noncurrent: { days: 1 } }, tagged, 9)).toEqual({ isExpired: false, removals: [] });
    expect(due({ tags: { kind: "temp" }, noncurrent: { days: 1 } }, tagged, 9)).toMatchObject({ removals: [0] });
    expect(due({ tags: { kind: "log" }, noncurrent: { days: 1 } }, tagged, 9)).toMatchObject({ removals: [] });
    expect(due({ tags: { kind: "temp" }, expireDays: 1 }, tagged, 9)).toMatchObject({ isExpired: false });
  });

  it("includes a lone delete marker, at once or after its days, and adds no second one", () => {
    const marker = [at(0, { isMarker: true })];
    expect(due({ removeLoneMarkers: true }, marker, 0)).toEqual({ isExpired: false, removals: [0] });
    expect(due({ expireDays: 2 }, marker, 1)).toEqual({ isExpired: false, removals: [] });
    expect(due({ expireDays: 2 }, marker, 2)).toEqual({ isExpired: false, removals: [0] });
    expect(due({ removeLoneMarkers: true, expireDays: 1 }, [at(0), ...marker], 9)).toEqual({
      isExpired: false,
      removals: [],
    });
  });

  it.each([
    [{}, /needs an action/],
    [{ expireDays: 0 }, /whole number from 1/],
    [{ expireDays: 1.5 }, /whole number/],
    [{ noncurrent: {} }, /needs days, keep/],
    [{ expiredays: 1 }, /expiredays/],
    [{ tags: { a: "1" }, abortUploadsDays: 1 }, /no tags/],
    [{ bytesAbove: 1, removeLoneMarkers: true }, /no size/],
    [{ bytesAbove: -1, expireDays: 1 }, /whole number/],
  ])("a rule that says %j is refused", (rule, what) => {
    expect(() => checkLifecycle([rule as LifecycleRule])).toThrow(what);
  });
});
