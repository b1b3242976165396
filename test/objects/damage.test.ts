// Damage to one record of an object store: it costs what that record says, and nothing beside it.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import type { DirectoryObjects } from "../../src/objects/objects.ts";
import type { ObjectVersion } from "../../src/objects/model/object.ts";
import { sites } from "../sites/sites.ts";
import { flip, makeNewer, recordDamages as damages, rewrite, type Damage } from "./damages.ts";
import { codeOf, filesIn, objectsOn, smallInline, textOf, type ObjectSite } from "./object-sites.ts";

const long = (text: string): string => `${text}, in a body that has a file of its own`;

/** The slots of a key, by number. */
async function slotsOf(site: ObjectSite, key = "cat"): Promise<string[]> {
  const { disk } = await site.openPorts();
  const files = await filesIn(disk, `${site.directory}/objects/buckets`);
  return files.filter((path) => path.includes(`/${key}~`)).sort();
}

async function listed(bucket: Bucket): Promise<string[]> {
  const { versions } = await bucket.listVersions();
  return versions.map(({ key, versionId }) => `${key} ${versionId}`);
}

async function damagedKeys(store: DirectoryObjects): Promise<(readonly [string, boolean])[]> {
  const { problems } = await store.verify();
  return problems
    .filter(({ severity }) => severity === "damage")
    .map(({ path, repaired }) => [path, repaired] as const);
}

const ten = Array.from({ length: 10 }, (_, index) => `text ${index}`);

interface World {
  readonly site: ObjectSite;
  readonly store: DirectoryObjects;
  readonly bucket: Bucket;
  readonly puts: readonly ObjectVersion[];
  /** Of the damaged slot. */
  readonly path: string;
}

describe.each(sites)("one damaged version of ten on %s", (name, make) => {
  /** Another process than the one that wrote the versions. */
  async function damagedWorld(slot: number, damage: Damage): Promise<World> {
    const site = await objectsOn(make);
    const writer = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
    const puts: ObjectVersion[] = [];
    for (const text of ten) puts.push(await writer.put("cat", text));
    await writer.put("dog", "beside it");
    const { disk } = await site.openPorts();
    const path = (await slotsOf(site))[slot]!;
    await damage(disk, path);
    const store = await site.open(smallInline);
    return { site, store, bucket: await store.bucket("photos"), puts, path };
  }

  const all = Object.entries(damages).flatMap(([what, damage]) => [0, 4, 9].map((slot) => ({ what, damage, slot })));
  // All of them where it costs little.
  const cases = all.filter(({ what }, index) => name === "the memory disk" || (what === "zeros" && index % 3 > 0));

  it.each(cases)("costs only itself: slot $slot has $what", async ({ damage, slot }) => {
    const { site, store, bucket, puts, path } = await damagedWorld(slot, damage);
    const others = puts.filter((_, index) => index !== slot);
    const isNewest = slot === 9;
    for (const [index, { versionId }] of puts.entries())
      if (index === slot) expect(await codeOf(bucket.get("cat", { versionId }))).toMatch(/CORRUPT|IO_ERROR/);
      else expect(await textOf(bucket, "cat", versionId)).toBe(ten[index]);
    if (isNewest) expect(await codeOf(bucket.get("cat"))).toMatch(/CORRUPT|IO_ERROR/);
    else expect(await textOf(bucket, "cat")).toBe("text 9");
    // Listed: all others, and which is the current one only if that is known.
    const page = await bucket.listVersions();
    expect(page.versions.filter(({ key }) => key === "cat").map(({ versionId }) => versionId)).toEqual(
      others.map(({ versionId }) => versionId).reverse(),
    );
    expect(page.versions.filter(({ isLatest }) => isLatest).map(({ key }) => key)).toEqual(
      isNewest ? ["dog"] : ["cat", "dog"],
    );
    expect(page.damaged).toMatchObject([{ key: "cat" }]);
    const { objects, damaged } = await bucket.list();
    expect(objects.map(({ key }) => key)).toEqual(isNewest ? ["dog"] : ["cat", "dog"]);
    expect(damaged?.map(({ key }) => key)).toEqual(isNewest ? ["cat"] : undefined);
    expect((await store.verify()).problems).toMatchObject([{ severity: "damage", path }]);
    // A condition on what cannot be read is not decided.
    if (isNewest) {
      expect(await codeOf(bucket.put("cat", "no", { ifNoneMatch: "*" }))).toMatch(/CORRUPT|IO_ERROR/);
      expect(await codeOf(bucket.put("cat", "no", { ifMatch: puts[8]!.etag }))).toMatch(/CORRUPT|IO_ERROR/);
      expect(await codeOf(bucket.delete("cat", { ifMatch: puts[8]!.etag }))).toMatch(/CORRUPT|IO_ERROR/);
    }
    // A put after it can be read back, also by a condition.
    const put = await bucket.put("cat", "after");
    expect(await textOf(bucket, "cat")).toBe("after");
    await bucket.put("cat", "after that", { ifMatch: put.etag });
    expect(await textOf(await (await site.open()).bucket("photos"), "cat")).toBe("after that");
    expect((await bucket.list()).damaged).toBe(undefined);
    // Tags, and the removal of a sound version, go on.
    await bucket.setTags("cat", { kind: "tabby" }, { versionId: others[0]!.versionId });
    await bucket.delete("cat", { versionId: others[1]!.versionId });
    expect(await bucket.tags("cat", { versionId: others[0]!.versionId })).toEqual({ kind: "tabby" });
    expect(await textOf(bucket, "cat")).toBe("after that");
  });

  it.each(cases.filter(({ what }) => what !== "a directory in its place"))(
    "is set aside alone by a repair: slot $slot has $what",
    async ({ damage, slot }) => {
      const { site, store, bucket, puts, path } = await damagedWorld(slot, damage);
      const { disk } = await site.openPorts();
      const before = await disk.readFile(path, 1_000_000);
      const report = await store.verify({ repair: true });
      expect(report).toMatchObject({ ok: false, problems: [{ severity: "damage", path, repaired: true }] });
      const aside = (await filesIn(disk, `${site.directory}/objects/buckets`)).filter((each) =>
        each.includes("/aside/"),
      );
      expect(await Promise.all(aside.map((each) => disk.readFile(each, 1_000_000)))).toEqual([before]);
      const others = puts.filter((_, index) => index !== slot);
      expect(await listed(bucket)).toEqual([
        ...others.map(({ versionId }) => `cat ${versionId}`).reverse(),
        expect.stringMatching(/^dog /),
      ]);
      for (const [index, { versionId }] of puts.entries())
        if (index === slot) expect(await codeOf(bucket.get("cat", { versionId }))).toBe("NO_SUCH_VERSION");
        else expect(await textOf(bucket, "cat", versionId)).toBe(ten[index]);
      expect(await textOf(bucket, "cat")).toBe(slot === 9 ? "text 8" : "text 9");
      expect((await bucket.list()).damaged).toBe(undefined);
      const again = await store.verify();
      expect(again.ok).toBe(true);
      expect(again.problems.every(({ severity }) => severity === "note")).toBe(true);
      await store.collect();
      expect(await textOf(bucket, "cat", others[0]!.versionId)).toBe(slot === 0 ? ten[1] : ten[0]);
    },
  );

  it("can be deleted by its id, and the others stay", async () => {
    const { store, bucket, puts } = await damagedWorld(9, damages["zeros"]!);
    await bucket.delete("cat", { versionId: puts[9]!.versionId });
    expect(await textOf(bucket, "cat")).toBe("text 8");
    expect(await codeOf(bucket.get("cat", { versionId: puts[9]!.versionId }))).toBe("NO_SUCH_VERSION");
    expect(await damagedKeys(store)).toEqual([]);
  });

  it("can be read again as soon as its record is restored", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    const one = await bucket.put("cat", "one");
    await bucket.put("cat", "two");
    const { disk } = await site.openPorts();
    const [, newest] = await slotsOf(site);
    const whole = await disk.readFile(newest!, 100_000);
    await damages["garbage"]!(disk, newest!);
    const other = await (await site.open()).bucket("photos");
    expect(await codeOf(other.get("cat"))).toBe("CORRUPT");
    expect(await textOf(other, "cat", one.versionId)).toBe("one");
    await rewrite(disk, newest!, () => whole);
    expect(await textOf(other, "cat")).toBe("two");
    expect((await other.listVersions()).versions).toHaveLength(2);
  });
});

describe.each(sites)("a damaged record on %s", (_name, make) => {
  it("blocks only the collection of its body and of unnamed bodies", async () => {
    const site = await objectsOn(make);
    const gone = await site.open(smallInline);
    const writer = await gone.createBucket("photos", { versioning: "enabled" });
    for (const text of ["one", "two", "three"]) await writer.put("cat", long(text));
    const { disk } = await site.openPorts();
    await damages["zeros"]!(disk, (await slotsOf(site))[1]!);
    await gone.close();
    const store = await site.open(smallInline);
    const bodies = async (): Promise<number> =>
      (await filesIn(disk, `${site.directory}/objects`)).filter((path) => path.includes("/bodies/")).length;
    expect(await codeOf(store.collect())).toBe("CORRUPT");
    expect(await bodies()).toBe(3);
    await store.verify({ repair: true });
    await store.collect();
    expect(await bodies()).toBe(3);
  });

  it("of the null version never makes an older null version current", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos");
    await writer.put("cat", "old");
    await writer.put("cat", "new");
    const { disk } = await site.openPorts();
    await flip('"atMs"')(disk, (await slotsOf(site))[1]!);
    const store = await site.open();
    const bucket = await store.bucket("photos");
    expect(await codeOf(bucket.get("cat"))).toBe("CORRUPT");
    expect(await codeOf(bucket.get("cat", { versionId: "null" }))).toBe("CORRUPT");
    expect(await listed(bucket)).toEqual([]);
    await store.verify({ repair: true });
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    await bucket.put("cat", "newer");
    expect(await textOf(bucket, "cat", "null")).toBe("newer");
  });

  it("in a bucket without versioning is removed by a delete of its object", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos");
    await writer.put("cat", "old");
    await writer.put("cat", "new");
    const { disk } = await site.openPorts();
    await damages["zeros"]!(disk, (await slotsOf(site))[1]!);
    const store = await site.open();
    const bucket = await store.bucket("photos");
    await bucket.delete("cat");
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    expect(await listed(bucket)).toEqual([]);
  });

  it("of a delete marker does not restore the object", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    const { versionId } = await writer.put("cat", "old");
    await writer.delete("cat");
    const { disk } = await site.openPorts();
    await flip('"atMs"')(disk, (await slotsOf(site))[1]!);
    const bucket = await (await site.open()).bucket("photos");
    expect(await codeOf(bucket.get("cat"))).toBe("CORRUPT");
    expect(await textOf(bucket, "cat", versionId)).toBe("old");
  });

  it("that may have retained a version blocks its deletion, and is not set aside", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    const writer = await store.createBucket("photos", { versioning: "enabled", objectLock: true });
    const one = await writer.put("cat", "one");
    await writer.setLegalHold("cat", true, { versionId: one.versionId });
    const two = await writer.put("cat", "two");
    const { disk } = await site.openPorts();
    await damages["garbage"]!(disk, (await slotsOf(site))[1]!);
    const other = await site.open();
    const bucket = await other.bucket("photos");
    expect(await codeOf(bucket.delete("cat", { versionId: one.versionId }))).toBe("CORRUPT");
    expect(await codeOf(bucket.setLegalHold("cat", false, { versionId: one.versionId }))).toBe("CORRUPT");
    expect(await textOf(bucket, "cat", one.versionId)).toBe("one");
    const { ok, problems } = await other.verify({ repair: true });
    expect({ ok, problems }).toMatchObject({ ok: false, problems: [{ repaired: false }] });
    expect(await codeOf(bucket.delete("cat", { versionId: one.versionId }))).toBe("CORRUPT");
    await bucket.delete("cat", { versionId: two.versionId });
  });

  it("of a retained version blocks its deletion", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos", { versioning: "enabled", objectLock: true });
    const one = await writer.put("cat", "one", { legalHold: true });
    const { disk } = await site.openPorts();
    await flip('"atMs"')(disk, (await slotsOf(site))[0]!);
    const bucket = await (await site.open()).bucket("photos");
    expect(await codeOf(bucket.delete("cat", { versionId: one.versionId }))).toBe("CORRUPT");
  });

  it("that may have made an object private leaves it private", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    const { versionId } = await writer.put("cat", "one", { acl: "public" });
    await writer.setAcl("cat", "private");
    await writer.setTags("cat", { a: "b" });
    const { disk } = await site.openPorts();
    await damages["zeros"]!(disk, (await slotsOf(site))[1]!);
    const bucket = await (await site.open()).bucket("photos");
    expect((await bucket.head("cat")).acl).toBe(undefined);
    expect((await bucket.head("cat", { versionId })).acl).toBe(undefined);
    expect(await textOf(bucket, "cat")).toBe("one");
  });

  it("of a newer release is not read, and no entry is added after it", async () => {
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    const { versionId } = await writer.put("cat", "one");
    await writer.put("cat", "two");
    const { disk } = await site.openPorts();
    const [, newest] = await slotsOf(site);
    await makeNewer(disk, newest!);
    const store = await site.open();
    const bucket = await store.bucket("photos");
    expect(await codeOf(bucket.get("cat"))).toBe("NEWER_FORMAT");
    expect(await textOf(bucket, "cat", versionId)).toBe("one");
    expect(await codeOf(bucket.put("cat", "three"))).toBe("NEWER_FORMAT");
    const { problems } = await store.verify({ repair: true });
    expect(problems).toMatchObject([{ path: newest, repaired: false }]);
  });

  it("in the first slot does not end the key", async () => {
    const site = await objectsOn(make);
    const store = await site.open();
    const bucket = await store.createBucket("photos", { versioning: "enabled" });
    await bucket.put("cat", "one");
    const { disk } = await site.openPorts();
    await damages["zeros"]!(disk, (await slotsOf(site))[0]!);
    const other = await site.open();
    expect(await codeOf(other.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
    expect(await codeOf(other.collect())).toBe("CORRUPT");
    const again = await other.bucket("photos");
    await again.put("cat", "two");
    expect(await textOf(again, "cat")).toBe("two");
  });

  it("does not block the completion of an upload to its key", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    await bucket.put("cat", "one");
    const upload = await bucket.createUpload("cat");
    const part = await upload.put(1, "from parts");
    const { disk } = await site.openPorts();
    await damages["zeros"]!(disk, (await slotsOf(site))[0]!);
    const other = await (await site.open()).bucket("photos");
    const again = await other.upload("cat", upload.id);
    expect(await codeOf(again.complete([part], { ifNoneMatch: "*" }))).toBe("CORRUPT");
    const done = await again.complete([part]);
    expect(await textOf(other, "cat")).toBe("from parts");
    expect((await again.complete([part])).versionId).toBe(done.versionId);
  });
});
