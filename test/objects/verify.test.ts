// Verification and repair on every kind of disk: damage is told, nothing else is, and what is whole
// stays.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, filesIn, objectsOn, smallInline, textOf, versionsOf, type ObjectSite } from "./object-sites.ts";

const long = (text: string): string => `${text}, in a body that has a file of its own`;

async function makeBucket(site: ObjectSite, versioning: "enabled" | "off" = "enabled"): Promise<Bucket> {
  return await (await site.open(smallInline)).createBucket("photos", { versioning });
}

/** Files of the store whose path has all of these. */
async function find(site: ObjectSite, ...parts: readonly string[]): Promise<string[]> {
  const files = await filesIn((await site.openPorts()).disk, `${site.directory}/objects`);
  return files.filter((path) => parts.every((part) => path.includes(part))).sort();
}

async function spoil(disk: Disk, path: string): Promise<void> {
  const file = await disk.open(path, "write");
  await file.write((await file.stat()).size - 1, Buffer.from("X"));
  await file.close();
}

describe.each(sites)("a verification on %s", (_name, make) => {
  it("names a bucket whose configuration is damaged, and continues with the others", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    for (const name of ["cats", "dogs"]) await (await store.createBucket(name)).put("one", "1");
    const { disk } = await site.openPorts();
    const config = `${site.directory}/objects/buckets/cats/config`;
    for (const path of await filesIn(disk, config)) {
      const file = await disk.open(path, "write");
      if ((await file.stat()).size > 1) await file.write(1, Buffer.from("?"));
      await file.close();
    }
    const { ok, checked, problems } = await (await site.open()).verify();
    expect({ ok, checked }).toEqual({ ok: false, checked: 1 });
    expect(problems).toMatchObject([{ severity: "damage", path: config }]);
  });

  it("reads every version, and names an altered body", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site, "enabled");
    const store = await site.open();
    await bucket.put("cat", "small");
    await bucket.put("dog", long("one"));
    expect(await store.verify()).toMatchObject({ ok: true, checked: 2, problems: [] });
    const { disk } = await site.openPorts();
    const files = await filesIn(disk, `${site.directory}/objects`);
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

  it("finds no damage while processes put and delete, and a repair moves nothing", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site);
    const plain = await (await site.open(smallInline)).createBucket("plain");
    const store = await site.open();
    const kept = await bucket.put("cat", "precious");
    let isOver = false;
    const write = async (): Promise<void> => {
      const puts: string[] = [];
      for (let count = 0; !isOver; count++) {
        puts.push((await bucket.put("cat", long(`${count}`))).versionId);
        if (puts.length > 3) await bucket.delete("cat", { versionId: puts.shift() });
        await plain.put("dog", long(`${count}`));
      }
    };
    const writing = write();
    try {
      for (let count = 0; count < 4; count++)
        expect(await store.verify({ repair: count % 2 === 1 })).toMatchObject({ ok: true, problems: [] });
    } finally {
      isOver = true;
      await writing;
    }
    expect(await textOf(bucket, "cat", kept.versionId)).toBe("precious");
  });

  it("that repairs keeps every version beside a damaged one, even after the next collection", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site);
    const gone = await site.open(smallInline);
    const writer = await gone.bucket("photos");
    await writer.put("cat", long("one"));
    const { disk } = await site.openPorts();
    const [body] = await find(site, "/bodies/");
    for (const text of ["two", "three"]) await writer.put("cat", long(text));
    await spoil(disk, body!);
    const store = await site.open();
    const { ok, problems } = await store.verify({ repair: true });
    expect({ ok, problems }).toMatchObject({ ok: false, problems: [{ path: body, repaired: false }] });
    await gone.close();
    await store.collect();
    const listed: string[] = [];
    for await (const { versionId } of bucket.versions({ key: "cat" })) listed.push(versionId);
    const [third, second, first] = listed;
    expect(await textOf(bucket, "cat", third)).toBe(long("three"));
    expect(await textOf(bucket, "cat", second)).toBe(long("two"));
    expect(await codeOf(textOf(bucket, "cat", first))).toBe("CORRUPT");
  });

  it("that repairs moves an entirely unreadable key aside, and keeps its bodies and the bucket", async () => {
    const site = await objectsOn(make);
    const gone = await site.open(smallInline);
    const writer = await gone.createBucket("photos", { versioning: "enabled" });
    for (const text of ["one", "two", "three"]) await writer.put("cat", long(text));
    const { disk } = await site.openPorts();
    const slots = await find(site, "cat~");
    const whole = await Promise.all(slots.map((slot) => disk.readFile(slot, 100_000)));
    const write = async (path: string, bytes: Uint8Array): Promise<void> => {
      const file = await disk.open(path, "write");
      await file.write(0, bytes);
      await file.close();
    };
    for (const [index, slot] of slots.entries()) await write(slot, new Uint8Array(whole[index]!.length));
    await gone.close();
    const store = await site.open();
    const bucket = await store.bucket("photos");
    expect(await store.verify()).toMatchObject({ ok: false, problems: slots.map((path) => ({ path })) });
    const { ok, problems } = await store.verify({ repair: true });
    expect({ ok, problems }).toMatchObject({ ok: false, problems: slots.map(() => ({ repaired: true })) });
    expect(await store.verify()).toMatchObject({ ok: true, problems: [{ severity: "note", what: /set aside/ }] });
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    await store.collect();
    expect(await find(site, "/bodies/")).toHaveLength(3);
    expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
    // Restored as the report says.
    const [moved] = await find(site, "/aside/");
    const directory = moved!.slice(0, moved!.lastIndexOf("/"));
    await disk.rename(directory, slots[0]!.slice(0, slots[0]!.lastIndexOf("/")));
    for (const [index, slot] of slots.entries()) await write(slot, whole[index]!);
    expect(await versionsOf(await (await site.open()).bucket("photos"), "cat")).toEqual(
      ["three", "two", "one"].map(long),
    );
  });

  it("names a slot that is a copy of another", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site);
    for (const text of ["one", "two", "three"]) await bucket.put("cat", text);
    const { disk } = await site.openPorts();
    const [first, , third] = await find(site, "cat~");
    const bytes = await disk.readFile(first!, 100_000);
    await disk.unlink(third!);
    await disk.createFile(third!, bytes, { sync: true });
    const { ok, problems } = await (await site.open()).verify();
    expect({ ok, problems }).toMatchObject({ ok: false, problems: [{ path: third, what: /same entry as/ }] });
  });

  it("names a bucket whose configuration is lost, and no bucket is created over its keys", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site);
    await bucket.put("cat", "here");
    const { disk } = await site.openPorts();
    const directory = `${site.directory}/objects/buckets/photos`;
    await disk.rename(`${directory}/config`, `${site.directory}/away`);
    const store = await site.open();
    expect(await store.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage" }] });
    expect(await codeOf(store.createBucket("photos"))).toBe("CORRUPT");
    expect(await codeOf(store.bucket("photos"))).toBe("NO_SUCH_BUCKET");
    await store.collect();
    await disk.rename(`${site.directory}/away`, `${directory}/config`);
    expect(await textOf(await (await site.open()).bucket("photos"), "cat")).toBe("here");
  });

  it("reports a lost first slot", async () => {
    const site = await objectsOn(make);
    const bucket = await makeBucket(site);
    for (const text of ["one", "two"]) await bucket.put("cat", text);
    const { disk } = await site.openPorts();
    const [first] = await find(site, "cat~");
    await disk.unlink(first!);
    const { problems } = await (await site.open()).verify();
    expect(problems).toMatchObject([{ severity: "leftover", what: /first slot is missing/ }]);
  });

  it.each(["all of it", "its files", "its manifests"])(
    "reports an index that lost %s, and a repair rebuilds it",
    async (what) => {
      const site = await objectsOn(make);
      const bucket = await makeBucket(site);
      for (const key of ["cat", "dog"]) await bucket.put(key, key);
      const { disk } = await site.openPorts();
      for (const path of await find(site, "/index/"))
        if (what !== "its manifests") await disk.unlink(path);
        else if (path.includes("/manifests/") && (await disk.stat(path)).size > 1) await spoil(disk, path);
      const [slot] = await find(site, "cat~");
      const index = `${slot!.slice(0, slot!.indexOf("/keys/"))}/index`;
      if (what === "all of it") await disk.rename(index, `${site.directory}/away`);
      const store = await site.open();
      expect(await store.verify()).toMatchObject({ ok: false, problems: [{ path: index, repaired: false }] });
      expect(await store.verify({ repair: true })).toMatchObject({ ok: true, problems: [{ repaired: true }] });
      const opened = await (await site.open()).bucket("photos");
      await opened.put("ant", "new");
      expect((await opened.list()).objects.map(({ key }) => key)).toEqual(["ant", "cat", "dog"]);
    },
  );
});
