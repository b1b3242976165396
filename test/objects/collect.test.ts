// Collection and verification on every kind of disk: what is not needed goes, and nothing else.
import { describe, expect, it } from "vitest";
import { openPlace } from "../../src/objects/bucket/open-objects.ts";
import { Buckets } from "../../src/objects/bucket/buckets.ts";
import { Collector } from "../../src/objects/collect/collect.ts";
import type { ObjectBucket } from "../../src/objects/bucket/object-bucket.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, objectsOn, smallInline, textOf, versionsOf, type ObjectSite } from "./object-sites.ts";

const long = (text: string): string => `${text}, in a body that has a file of its own`;

/** Collects as a process whose clock is ahead by an hour: keys without versions have rested. */
async function collectLater(site: ObjectSite): Promise<number> {
  const ports = await site.openPorts();
  const clock: Ports["clock"] = Object.assign(Object.create(ports.clock) as Ports["clock"], {
    wallMs: () => ports.clock.wallMs() + 3_600_000,
    monotonicMs: () => ports.clock.monotonicMs(),
    sleep: (ms: number, options?: object) => ports.clock.sleep(ms, options),
    alarm: (ms: number, ring: () => void) => ports.clock.alarm(ms, ring),
  });
  const { place, ownsGround } = await openPlace({ ...ports, clock }, `${site.directory}/objects`);
  try {
    return (await new Collector(place, new Buckets(place)).collect()).objects;
  } finally {
    if (ownsGround) await place.ground.close();
  }
}

/** The names of all files below a directory, without those of the configuration and of the ground. */
async function filesIn({ disk }: Ports, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory)) {
    if (["config", ".holdfast", "objects.json"].includes(name)) continue;
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "file") found.push(path);
    else found.push(...(await filesIn(ports(disk), path)));
  }
  return found;
}
const ports = (disk: Ports["disk"]): Ports => ({ disk }) as Ports;

async function makeBucket(site: ObjectSite, versioning: "enabled" | "off"): Promise<ObjectBucket> {
  return await (await site.open(smallInline)).createBucket("photos", { versioning });
}

describe.each(sites)("a collection on %s", (_name, make) => {
  it("removes keys without versions, and leaves all that has one", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "off");
    for (const key of ["cat", "dog", "cow"]) await bucket.put(key, long(key));
    await bucket.put("cat", long("newer"));
    await bucket.delete("dog");
    await collectLater(site);
    expect(await textOf(bucket, "cat")).toBe(long("newer"));
    expect(await textOf(bucket, "cow")).toBe(long("cow"));
    expect(await codeOf(bucket.get("dog"))).toBe("NO_SUCH_KEY");
    const { disk } = await site.openPorts();
    const files = await filesIn(ports(disk), `${site.directory}/objects`);
    expect(files.filter((path) => path.includes("dog~"))).toEqual([]);
    expect(files.filter((path) => path.includes("/bodies/"))).toHaveLength(2);
    await bucket.put("dog", "again");
    expect(await textOf(bucket, "dog")).toBe("again");
  });

  it("removes bodies that no version names when their process is gone, and none that one names", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const gone = await site.open(smallInline);
    await (await gone.bucket("photos")).put("cat", long("kept"));
    const { disk } = await site.openPorts();
    const [body] = (await filesIn(ports(disk), `${site.directory}/objects`)).filter((each) =>
      each.includes("/bodies/"),
    );
    const orphan = `${body!.slice(0, body!.lastIndexOf("/"))}/orphan`;
    await disk.createFile(orphan, Buffer.from("left by a process that died"), { sync: true });
    await collectLater(site);
    expect(await disk.findStat(orphan)).toBeDefined();
    await gone.close();
    await collectLater(site);
    // Memory has one process, which goes on.
    if (_name !== "the memory disk") expect(await disk.findStat(orphan)).toBeUndefined();
    expect(await versionsOf(bucket, "cat")).toEqual([long("kept")]);
  });

  it("may be asked for by every process at the same time", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const stores = [await site.open(), await site.open(), await site.open()];
    const puts = ["a", "b", "c"].map((text) => bucket.put("cat", long(text)));
    await Promise.all(stores.map((store) => store.collect()));
    await Promise.all(puts);
    expect((await versionsOf(bucket, "cat")).sort()).toEqual(["a", "b", "c"].map(long));
  });

  it("a verification names a bucket whose configuration is damaged, and goes on with the others", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    for (const name of ["cats", "dogs"]) await (await store.createBucket(name)).put("one", "1");
    const { disk } = await site.openPorts();
    const config = `${site.directory}/objects/buckets/cats/config`;
    for (const path of await filesIn(ports(disk), config)) {
      const file = await disk.open(path, "write");
      if ((await file.stat()).size > 1) await file.write(1, Buffer.from("?"));
      await file.close();
    }
    const { ok, checked, problems } = await (await site.open()).verify();
    expect({ ok, checked }).toEqual({ ok: false, checked: 1 });
    expect(problems).toMatchObject([{ severity: "damage", path: config }]);
  });

  it("a verification reads every version, and names a body that was altered", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const store = await site.open();
    await bucket.put("cat", "small");
    await bucket.put("dog", long("one"));
    expect(await store.verify()).toMatchObject({ ok: true, checked: 2, problems: [] });
    const { disk } = await site.openPorts();
    const files = await filesIn(ports(disk), `${site.directory}/objects`);
    const body = files.find((path) => path.includes("/bodies/"))!;
    const slot = files.find((path) => path.includes("cat~"))!;
    for (const path of [body, slot]) {
      const file = await disk.open(path, "write");
      await file.write((await file.stat()).size - 1, Buffer.from("X"));
      await file.close();
    }
    expect(await codeOf(textOf(bucket, "dog"))).toBe("CORRUPT");
    expect(await codeOf(textOf(bucket, "cat"))).toBe("CORRUPT");
    const { ok, problems } = await store.verify();
    expect(ok).toBe(false);
    expect(problems.map(({ path }) => path).sort()).toEqual([body, slot].sort());
  });
});
