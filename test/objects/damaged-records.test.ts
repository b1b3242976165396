// Damage to a record that is no version: of a bucket, of an upload, of the index. It costs what that
// record says, and what is derived costs nothing.
import { describe, expect, it, onTestFinished } from "vitest";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import type { ObjectVersion } from "../../src/objects/model/object.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { sites } from "../sites/sites.ts";
import { fileDamages, flip, makeNewer, withoutRight, type Damage } from "./damages.ts";
import { codeOf, filesIn, objectsOn, smallInline, textOf, type ObjectSite } from "./object-sites.ts";

const long = (text: string): string => `${text}, in a body that has a file of its own`;
const unreadable = /CORRUPT|IO_ERROR|NEWER_FORMAT|NO_PERMISSION/;
const remove: Damage = async (disk, path) => await disk.unlink(path);
/** Told apart by a repair: another release or another user can read it. */
const noRight = "no right to read it";

/** All of them on one site; on the others one, which costs little. */
function casesOn(name: string, more: readonly string[] = []): string[] {
  const all = [...Object.keys(fileDamages), noRight, ...more];
  return name === "the memory disk" ? all : all.slice(0, 1);
}

/** Opens the store with this damage to one file, as another process. */
async function openDamaged(site: ObjectSite, what: string, path: string): Promise<DirectoryObjects> {
  const ports = await site.openPorts();
  if (what === "its absence") await remove(ports.disk, path);
  else if (what !== noRight) await fileDamages[what]!(ports.disk, path);
  const disk = what === noRight ? withoutRight(ports.disk, path) : ports.disk;
  const store = new DirectoryObjects(await openStorage({ ...ports, disk }, `${site.directory}/objects`), smallInline);
  onTestFinished(() => store.close());
  return store;
}

async function allIn(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory)) {
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "file") found.push(path);
    else found.push(...(await allIn(disk, path)));
  }
  return found.sort();
}

/** The last file whose path matches, and which has this text. */
async function fileAt(site: ObjectSite, pattern: RegExp, text = ""): Promise<string> {
  const { disk } = await site.openPorts();
  const paths = (await allIn(disk, `${site.directory}/objects`)).filter((path) => pattern.test(path));
  for (const path of paths.reverse()) if (Buffer.from(await disk.readFile(path, 1_000_000)).includes(text)) return path;
  throw new Error(`no file is like ${String(pattern)}`);
}

function isLeftByRepair(what: string): boolean {
  return what === noRight || what === "a newer format";
}

async function keysOf(bucket: Bucket): Promise<string[]> {
  return (await bucket.list()).objects.map(({ key }) => key);
}

describe.each(sites)("a damaged record of a bucket on %s", (name, make) => {
  const files = {
    "its newest state": /cats\/config\/[0-9]+-[^/]+\/[0-9]+$/,
    "its epoch": /cats\/config\/epochs\/[0-9]+$/,
  };
  const cases = casesOn(name).flatMap((what) =>
    Object.entries(files).map(([file, pattern]) => ({ what, file, pattern })),
  );

  it.each(cases)("costs only that bucket: $file has $what", async ({ what, pattern }) => {
    const site = await objectsOn(make);
    const writer = await site.open();
    for (const each of ["cats", "dogs"]) await (await writer.createBucket(each)).put("one", each);
    const store = await openDamaged(site, what, await fileAt(site, pattern));
    const [cats, dogs] = await store.listBuckets();
    expect([cats?.name, cats?.damaged?.message, dogs?.name, dogs?.damaged]).toEqual([
      "cats",
      expect.any(String),
      "dogs",
      undefined,
    ]);
    expect(await codeOf(store.bucket("cats"))).toMatch(unreadable);
    const bucket = await store.bucket("dogs");
    await bucket.put("two", "2");
    expect(await keysOf(bucket)).toEqual(["one", "two"]);
    for (const repair of [false, true]) {
      const { ok, problems } = await store.verify({ repair });
      expect({ ok, problems }).toMatchObject({
        ok: false,
        problems: [{ severity: "damage", path: `${site.directory}/objects/buckets/cats/config`, repaired: false }],
      });
    }
    expect(await codeOf(store.collect())).toMatch(unreadable);
  });
});

describe.each(sites)("a damaged record of an upload on %s", (name, make) => {
  interface World {
    readonly site: ObjectSite;
    readonly ids: { readonly broken: string; readonly other: string };
  }

  async function newWorld(): Promise<World> {
    const site = await objectsOn(make);
    const bucket = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
    const broken = await bucket.createUpload("broken");
    const other = await bucket.createUpload("other");
    for (const upload of [broken, other]) for (const part of [1, 2]) await upload.put(part, `${upload.key} ${part}`);
    return { site, ids: { broken: broken.id, other: other.id } };
  }

  async function expectOthers(bucket: Bucket, { other }: World["ids"]): Promise<void> {
    const { uploads } = await bucket.listUploads();
    expect(uploads.filter(({ damaged }) => damaged === undefined).map(({ id }) => id)).toContain(other);
    const upload = await bucket.upload("other", other);
    const { parts } = await upload.parts();
    await upload.complete(parts);
    expect(await textOf(bucket, "other")).toBe("other 1other 2");
  }

  it.each(casesOn(name))("costs only that upload: its record has %s", async (what) => {
    const { site, ids } = await newWorld();
    const path = await fileAt(site, new RegExp(`${ids.broken}/upload.json$`));
    const store = await openDamaged(site, what, path);
    const bucket = await store.bucket("photos");
    expect((await bucket.listUploads()).uploads.find(({ id }) => id === ids.broken)?.damaged).toMatchObject({
      code: expect.stringMatching(unreadable),
    });
    const upload = await bucket.upload("broken", ids.broken);
    expect(await codeOf(upload.parts())).toMatch(unreadable);
    expect(await codeOf(upload.put(3, "late"))).toMatch(unreadable);
    expect(await codeOf(upload.complete([{ partNumber: 1, etag: "x" }]))).toMatch(unreadable);
    expect(await codeOf(store.deleteBucket("photos"))).toBe("BUCKET_NOT_EMPTY");
    expect(await codeOf(store.collect())).toMatch(unreadable);
    expect(await store.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage", path }] });
    await expectOthers(bucket, ids);
    await upload.abort();
    expect((await bucket.listUploads()).uploads).toEqual([]);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it.each(casesOn(name))(
    "is set aside by a repair, and the other upload continues: its record has %s",
    async (what) => {
      const { site, ids } = await newWorld();
      const store = await openDamaged(site, what, await fileAt(site, new RegExp(`${ids.broken}/upload.json$`)));
      const bucket = await store.bucket("photos");
      const { ok, problems } = await store.verify({ repair: true });
      expect({ ok, problems }).toMatchObject({ ok: false, problems: [{ repaired: !isLeftByRepair(what) }] });
      expect((await store.verify()).ok).toBe(!isLeftByRepair(what));
      if (!isLeftByRepair(what)) expect(await codeOf(bucket.upload("broken", ids.broken))).toBe("NO_SUCH_UPLOAD");
      await expectOthers(bucket, ids);
    },
  );

  it.each(casesOn(name))("costs only that part: the record of a part has %s", async (what) => {
    const { site, ids } = await newWorld();
    const path = await fileAt(site, new RegExp(`${ids.broken}/p00001$`));
    const store = await openDamaged(site, what, path);
    const bucket = await store.bucket("photos");
    const upload = await bucket.upload("broken", ids.broken);
    expect(await codeOf(upload.parts())).toMatch(unreadable);
    expect((await bucket.listUploads()).uploads).toHaveLength(2);
    expect(await store.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage", path }] });
    const { problems } = await store.verify({ repair: true });
    expect(problems).toMatchObject([{ path, repaired: !isLeftByRepair(what) }]);
    await expectOthers(bucket, ids);
    if (!isLeftByRepair(what)) {
      expect((await upload.parts()).parts.map(({ partNumber }) => partNumber)).toEqual([2]);
      const part = await upload.put(1, "again");
      await upload.complete([part, ...(await upload.parts({ after: 1 })).parts]);
      expect(await textOf(bucket, "broken")).toBe("againbroken 2");
    }
    await store.collect();
  });

  it("is reported for a part whose body was altered, before the upload is completed", async () => {
    const { site, ids } = await newWorld();
    const path = await fileAt(site, new RegExp(`${ids.broken}/b[0-9a-z]+$`));
    const store = await openDamaged(site, "a flipped bit", path);
    expect(await store.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage", path }] });
    await store.verify({ repair: true });
    expect((await store.verify()).ok).toBe(true);
    const upload = await (await store.bucket("photos")).upload("broken", ids.broken);
    expect((await upload.parts()).parts).toHaveLength(1);
  });

  async function completed(
    parts: number,
  ): Promise<{ site: ObjectSite; version: ObjectVersion; text: string; id: string }> {
    const site = await objectsOn(make);
    const bucket = await (await site.open(smallInline)).createBucket("photos", { versioning: "enabled" });
    const upload = await bucket.createUpload("big", { metadata: { by: "ada" } });
    const texts = Array.from({ length: parts }, (_, index) => `part ${index + 1};`);
    const infos = [];
    for (const [index, text] of texts.entries()) infos.push(await upload.put(index + 1, text));
    return { site, version: await upload.complete(infos), text: texts.join(""), id: upload.id };
  }

  const ends = [...casesOn(name), "its absence"].flatMap((what) => [2, 33].map((parts) => ({ what, parts })));
  it.each(ends)("keeps the $parts parts that a version uses: its end has $what", async ({ what, parts }) => {
    const { site, version, text, id } = await completed(parts);
    const path = await fileAt(site, /\/end$/);
    const store = await openDamaged(site, what, path);
    const bucket = await store.bucket("photos");
    const isReadable = async (): Promise<void> => expect(await textOf(bucket, "big", version.versionId)).toBe(text);
    if (parts === 2) await isReadable();
    else expect(await codeOf(textOf(bucket, "big"))).toMatch(unreadable);
    // Neither an abort nor a collection takes the body of the version.
    expect(await codeOf((await bucket.upload("big", id)).abort())).toMatch(/NO_SUCH_UPLOAD/);
    await store.collect().catch(() => undefined);
    const before = await store.verify();
    expect(before).toMatchObject({ ok: false });
    expect(before.problems.map((each) => each.path)).toContain(path);
    await store.verify({ repair: true });
    if (isLeftByRepair(what)) return;
    await isReadable();
    expect((await store.verify()).ok).toBe(true);
    expect((await bucket.listUploads()).uploads).toEqual([]);
    await bucket.delete("big", { versionId: version.versionId });
    await store.collect();
    expect((await allIn((await site.openPorts()).disk, `${site.directory}/objects`)).join()).not.toContain(id);
  });

  it.each([...casesOn(name), "its absence"])("keeps the parts of a version: its record has %s", async (what) => {
    const { site, text, id } = await completed(2);
    const store = await openDamaged(site, what, await fileAt(site, /upload\.json$/));
    const bucket = await store.bucket("photos");
    expect(await textOf(bucket, "big")).toBe(text);
    expect(await codeOf(bucket.upload("big", id).then((upload) => upload.abort()))).toBe("NO_SUCH_UPLOAD");
    await store.collect().catch(() => undefined);
    await store.verify({ repair: true });
    expect((await store.verify()).ok).toBe(!isLeftByRepair(what));
    expect(await textOf(bucket, "big")).toBe(text);
  });

  it.each(casesOn(name))("can be aborted, and is set aside, if no version came of it: its end has %s", async (what) => {
    for (const way of ["abort", "repair"]) {
      const { site, ids } = await newWorld();
      const path = (await fileAt(site, new RegExp(`${ids.broken}/upload.json$`))).replace("upload.json", "end");
      const { disk } = await site.openPorts();
      await disk.createFile(path, Buffer.from('{"kind":"upload-end","format":1,"body":{}}\n'), { sync: true });
      const store = await openDamaged(site, what, path);
      const bucket = await store.bucket("photos");
      expect((await bucket.listUploads()).uploads.filter(({ damaged }) => damaged !== undefined)).toHaveLength(1);
      expect(await store.verify()).toMatchObject({ ok: false, problems: [{ path }] });
      if (way === "abort") await (await bucket.upload("broken", ids.broken)).abort();
      else await store.verify({ repair: true });
      if (way === "abort" || !isLeftByRepair(what)) {
        expect((await store.verify()).ok).toBe(true);
        expect(await codeOf(bucket.upload("broken", ids.broken))).toBe("NO_SUCH_UPLOAD");
      }
      await expectOthers(bucket, ids);
    }
  });
});

describe.each(sites)("a damaged index on %s", (name, make) => {
  const keys = Array.from({ length: 12 }, (_, index) => `key-${String(index).padStart(2, "0")}`);
  const files = {
    "an announcement": /\/index\/new\/[0-9a-z]+$/,
    "a run": /\/index\/runs\/[0-9a-z]+$/,
    "its open file": /\/index\/runs\/[0-9a-z]{26}\.open$/,
    "the newest manifest": /\/manifests\/[0-9]+-[^/]+\/[0-9]+$/,
    "its epoch": /\/manifests\/epochs\/[0-9]+$/,
  };
  const all = Object.entries(files).flatMap(([file, pattern]) =>
    [...casesOn(name), "its absence"].map((what) => ({ file, pattern, what })),
  );
  // An open file is empty, and only there. A file that is gone as if by a merge costs nothing.
  const cases = all.filter(({ file, what }) => file !== "its open file" || what === "its absence");

  /** Other announcements are in the run already. */
  const textIn = (pattern: RegExp): string => (pattern === files["an announcement"] ? "key-11" : "");
  const isNeeded = (pattern: RegExp): boolean => !String(pattern).includes("manifests");

  async function newWorld(): Promise<ObjectSite> {
    const site = await objectsOn(make);
    const store = await site.open();
    const bucket = await store.createBucket("photos", { versioning: "enabled" });
    for (const key of keys.slice(0, 8)) await bucket.put(key, key);
    await store.collect();
    for (const key of keys.slice(8)) await bucket.put(key, key);
    return site;
  }

  it.each(cases)("hides no key: $file has $what", async ({ pattern, what }) => {
    const site = await newWorld();
    const store = await openDamaged(site, what, await fileAt(site, pattern, textIn(pattern)));
    const bucket = await store.bucket("photos");
    // Only a verification can miss what was announced in a file that is gone.
    const isTold = !(what === "its absence" && pattern === files["an announcement"]);
    const { ok } = await store.verify();
    // The manifest before the newest one has all that is needed.
    expect(ok).toBe(what === "its absence" && !isNeeded(pattern));
    if (isTold) {
      expect(await keysOf(bucket)).toEqual(keys);
      expect((await bucket.listVersions()).versions.map(({ key }) => key)).toEqual(keys);
    }
    await bucket.put("new", "new");
    await bucket.delete("key-03");
    await store.verify({ repair: true });
    expect(await keysOf(bucket)).toEqual([...keys.filter((key) => key !== "key-03"), "new"]);
    // A listing has made it again, or the repair has.
    if (!isLeftByRepair(what)) expect((await store.verify()).ok).toBe(true);
    const other = await (await site.open()).bucket("photos");
    if (!isLeftByRepair(what)) expect(await keysOf(other)).toEqual([...keys.filter((key) => key !== "key-03"), "new"]);
  });

  it("hides no key if one letter of a run was changed", async () => {
    const site = await newWorld();
    const { disk } = await site.openPorts();
    await flip('key-03"')(disk, await fileAt(site, files["a run"]));
    const bucket = await (await site.open()).bucket("photos");
    expect(await keysOf(bucket)).toEqual(keys);
  });

  it("is rebuilt by a listing, even for a process that had it open", async () => {
    const site = await newWorld();
    const open = await (await site.open()).bucket("photos");
    expect(await keysOf(open)).toEqual(keys);
    const { disk } = await site.openPorts();
    await fileDamages["no bytes"]!(disk, await fileAt(site, files["the newest manifest"]));
    const store = await site.open();
    expect(await keysOf(await store.bucket("photos"))).toEqual(keys);
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
    await open.put("new", "new");
    expect(await keysOf(open)).toEqual([...keys, "new"]);
    await store.collect();
    expect(await keysOf(open)).toEqual([...keys, "new"]);
  });

  it("that is lost does not block puts", async () => {
    const site = await newWorld();
    const { disk } = await site.openPorts();
    const run = await fileAt(site, files["a run"]);
    await disk.rename(run.slice(0, run.indexOf("/runs/")), `${site.directory}/away`);
    const bucket = await (await site.open()).bucket("photos");
    await bucket.put("new", "new");
    expect(await keysOf(bucket)).toEqual([...keys, "new"]);
  });

  it("is rebuilt by a collection", async () => {
    const site = await newWorld();
    const { disk } = await site.openPorts();
    await fileDamages["a flipped bit"]!(disk, await fileAt(site, files["an announcement"], "key-11"));
    const store = await site.open();
    await store.collect();
    expect(await store.verify()).toMatchObject({ ok: true, problems: [] });
  });
});

describe.each(sites)("a damaged body on %s", (name, make) => {
  it.each(casesOn(name, ["its absence"]).filter((what) => what !== "a newer format"))(
    "costs only its version: it has %s",
    async (what) => {
      const site = await objectsOn(make);
      const gone = await site.open(smallInline);
      const writer = await gone.createBucket("photos", { versioning: "enabled" });
      const one = await writer.put("cat", long("one"));
      const path = await fileAt(site, /\/bodies\//);
      const two = await writer.put("cat", long("two"));
      const store = await openDamaged(site, what, path);
      const bucket = await store.bucket("photos");
      expect(await codeOf(textOf(bucket, "cat", one.versionId))).toMatch(unreadable);
      expect(await textOf(bucket, "cat", two.versionId)).toBe(long("two"));
      expect((await bucket.listVersions()).versions).toHaveLength(2);
      expect(await store.verify({ repair: true })).toMatchObject({ ok: false, problems: [{ path, repaired: false }] });
      await bucket.delete("cat", { versionId: one.versionId });
      expect((await store.verify()).ok).toBe(true);
      expect(await textOf(bucket, "cat")).toBe(long("two"));
    },
  );
});

describe("pages of a listing", () => {
  it("name every damaged version once, whatever the limit", async () => {
    const [, make] = sites.find(([name]) => name === "the memory disk")!;
    const site = await objectsOn(make);
    const writer = await (await site.open()).createBucket("photos", { versioning: "enabled" });
    for (const key of ["a", "b", "c"]) for (const text of ["1", "2", "3"]) await writer.put(key, text);
    const { disk } = await site.openPorts();
    const slots = (await filesIn(disk, `${site.directory}/objects/buckets`)).filter((path) => /\/b~/.test(path)).sort();
    await flip('"atMs"')(disk, slots[0]!);
    await makeNewer(disk, slots[2]!);
    const bucket = await (await site.open()).bucket("photos");
    for (const limit of [1, 2, 3, 4]) {
      const found: string[] = [];
      for (let markers = {}; ;) {
        const page = await bucket.listVersions({ limit, ...markers });
        expect(page.versions.length + (page.damaged?.length ?? 0)).toBeLessThanOrEqual(limit);
        found.push(...page.versions.map(({ key }) => key), ...(page.damaged ?? []).map(({ key }) => `damaged ${key}`));
        if (page.nextKeyMarker === undefined) break;
        markers = { keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker };
      }
      expect(found.sort()).toEqual(["a", "a", "a", "b", "c", "c", "c", "damaged b", "damaged b"]);
      const objects: string[] = [];
      for (let after: string | undefined; ;) {
        const page = await bucket.list({ limit, after });
        objects.push(...page.objects.map(({ key }) => key), ...(page.damaged ?? []).map(({ key }) => `damaged ${key}`));
        if (page.next === undefined) break;
        after = page.next;
      }
      expect(objects.sort()).toEqual(["a", "c", "damaged b"]);
    }
  });
});
