// What callers give that makes no sense, and files that were altered: an error that says so, and
// never other bytes.
import { describe, expect, it } from "vitest";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import type { DirectoryObjects } from "../../src/objects/objects.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { memorySite } from "./acceptance/memory-bucket.ts";
import { codeOf, objectsOn, smallInline, textOf, type ObjectSite } from "./object-sites.ts";

const long = "a body that is long enough for a file of its own";
const wrong = { wrongOption: true } as never;

interface Opened {
  readonly site: ObjectSite;
  readonly store: DirectoryObjects;
  readonly bucket: Bucket;
  readonly disk: Disk;
}

async function open(): Promise<Opened> {
  const site = await objectsOn(memorySite);
  const store = await site.open(smallInline);
  const bucket = await store.createBucket("photos", { versioning: "enabled" });
  return { site, store, bucket, disk: (await site.openPorts()).disk };
}

async function filesIn(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory)) {
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "file") found.push(path);
    else found.push(...(await filesIn(disk, path)));
  }
  return found;
}

async function slotsOf({ disk, site }: Opened, key: string): Promise<string[]> {
  const files = await filesIn(disk, `${site.directory}/objects/buckets`);
  return files.filter((path) => path.includes(`/${key}~`)).sort();
}

async function replaceFile(disk: Disk, path: string, bytes: Uint8Array): Promise<void> {
  await disk.unlink(path);
  await disk.createFile(path, bytes, { sync: true });
}

/** As a process that has read nothing of it before. */
async function readAnew({ site }: Opened, key: string, versionId?: string): Promise<string> {
  const store = await site.open();
  try {
    return await textOf(await store.bucket("photos"), key, versionId);
  } finally {
    await store.close();
  }
}

describe("an altered record", () => {
  it("is CORRUPT with its path and key, whichever byte was changed, and serves no wrong bytes", async () => {
    const opened = await open();
    await opened.bucket.put("cat", "the body");
    const [path] = await slotsOf(opened, "cat");
    const bytes = await opened.disk.readFile(path!, 100_000);
    for (let at = 0; at < bytes.length; at++) {
      const altered = Uint8Array.from(bytes);
      altered[at]! ^= 0x01;
      await replaceFile(opened.disk, path!, altered);
      await expect(readAnew(opened, "cat"), `byte ${at}`).rejects.toMatchObject({
        code: "CORRUPT",
        path,
        message: expect.stringContaining('"cat"') as string,
      });
    }
    await replaceFile(opened.disk, path!, bytes);
    expect(await readAnew(opened, "cat")).toBe("the body");
  });

  it("is CORRUPT if it was truncated at any length", async () => {
    const opened = await open();
    await opened.bucket.put("cat", "the body");
    const [path] = await slotsOf(opened, "cat");
    const bytes = await opened.disk.readFile(path!, 100_000);
    for (let length = 0; length < bytes.length; length++) {
      await replaceFile(opened.disk, path!, bytes.subarray(0, length));
      expect(await codeOf(readAnew(opened, "cat")), `length ${length}`).toBe("CORRUPT");
    }
  });

  it("is not served if it was replaced by the record of another key or version", async () => {
    const opened = await open();
    const { bucket, disk } = opened;
    const cat = await bucket.put("cat", "of the cat");
    await bucket.put("cat", "newer");
    const dog = await bucket.put("dog", "of the dog");
    await bucket.put("dog", "newer");
    const [[first], [other]] = [await slotsOf(opened, "cat"), await slotsOf(opened, "dog")];
    await replaceFile(disk, first!, await disk.readFile(other!, 100_000));
    for (const versionId of [cat.versionId, dog.versionId])
      expect(await codeOf(readAnew(opened, "cat", versionId))).toBe("CORRUPT");
    expect(await readAnew(opened, "cat")).toBe("newer");
  });

  it("of a large body is CORRUPT before its last bytes are returned, and if its file is missing", async () => {
    const opened = await open();
    await opened.bucket.put("cat", long);
    const files = await filesIn(opened.disk, `${opened.site.directory}/objects/buckets`);
    const body = files.find((path) => path.includes("/bodies/"))!;
    for (const altered of [long.slice(1), `${long}!`, long.replace("body", "BODY")]) {
      await replaceFile(opened.disk, body, Buffer.from(altered));
      await expect(readAnew(opened, "cat")).rejects.toMatchObject({
        code: "CORRUPT",
        path: body,
        message: expect.stringContaining('"cat"') as string,
      });
    }
    await opened.disk.unlink(body);
    await expect(readAnew(opened, "cat")).rejects.toMatchObject({ code: "CORRUPT", path: body });
    expect((await opened.store.verify()).problems.map(({ path }) => path)).toEqual([body]);
  });

  it("of the settings is CORRUPT with its path", async () => {
    const opened = await open();
    await opened.bucket.put("cat", "x");
    const files = await filesIn(opened.disk, `${opened.site.directory}/objects/buckets/photos/config`);
    for (const path of files.filter((each) => /[0-9]{10}$/.test(each))) {
      const bytes = Uint8Array.from(await opened.disk.readFile(path, 100_000));
      if (bytes.length === 0) continue;
      bytes[bytes.length >> 1]! ^= 0x01;
      await replaceFile(opened.disk, path, bytes);
    }
    expect(await codeOf(readAnew(opened, "cat"))).toBe("CORRUPT");
  });
});

describe("a source that fails", () => {
  it("at any chunk leaves nothing: no version, no body, no temp file", async () => {
    const { bucket, disk, site } = await open();
    await bucket.put("warm", "so that all directories are there");
    const before = await filesIn(disk, site.directory);
    for (const pieces of [0, 1, 2, 5])
      for (const act of [
        (body: AsyncIterable<Uint8Array>) => bucket.put("cat", body),
        (body: AsyncIterable<Uint8Array>) => bucket.put("warm", body),
        (body: AsyncIterable<Uint8Array>) => bucket.update("cat", () => body),
      ]) {
        async function* failing(): AsyncGenerator<Uint8Array> {
          for (let count = 0; count < pieces; count++) yield Buffer.from(long);
          throw new Error("the sender went away");
        }
        await expect(act(failing())).rejects.toThrow("the sender went away");
      }
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    expect(await filesIn(disk, site.directory)).toEqual(before);
    const upload = await bucket.createUpload("film");
    await expect(
      upload.put(
        1,
        (async function* () {
          yield Buffer.from(long);
          throw new Error("the sender went away");
        })(),
      ),
    ).rejects.toThrow("the sender went away");
    expect((await upload.parts()).parts).toEqual([]);
    await upload.abort();
    expect((await filesIn(disk, site.directory)).filter((path) => path.includes("/uploads/"))).toEqual([]);
  });

  it("by yielding something other than bytes, or fewer than declared, stores nothing", async () => {
    const { bucket } = await open();
    async function* words(): AsyncGenerator<never> {
      yield "a text" as never;
    }
    await expect(bucket.put("cat", words())).rejects.toThrow(TypeError);
    for (const size of [0, long.length - 1, long.length + 1])
      expect(await codeOf(bucket.put("cat", long, { size }))).toBe("BAD_DIGEST");
    for (const size of [-1, 1.5, Number.NaN])
      await expect(bucket.put("cat", "x", { size })).rejects.toThrow(RangeError);
    expect((await bucket.listVersions()).versions).toEqual([]);
  });
});

describe("an unknown option", () => {
  it("is a TypeError that names it, at every call", async () => {
    const { store, bucket } = await open();
    await bucket.put("cat", "x");
    const upload = await bucket.createUpload("film");
    const part = await upload.put(1, "x");
    const all = async (items: AsyncIterable<unknown>): Promise<void> => {
      for await (const _ of items);
    };
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      createBucket: () => store.createBucket("films", wrong),
      collect: () => store.collect(wrong),
      verify: () => store.verify(wrong),
      put: () => bucket.put("cat", "x", wrong),
      get: () => bucket.get("cat", wrong),
      range: () => bucket.get("cat", { range: { start: 0, ...(wrong as object) } }),
      head: () => bucket.head("cat", wrong),
      delete: () => bucket.delete("cat", wrong),
      deleteMany: () => bucket.deleteMany([{ key: "cat" }], wrong),
      copy: () => bucket.copy({ key: "cat" }, "dog", wrong),
      update: () => bucket.update("cat", () => "x", wrong),
      list: () => bucket.list(wrong),
      listVersions: () => bucket.listVersions(wrong),
      objects: () => all(bucket.objects(wrong)),
      versions: () => all(bucket.versions(wrong)),
      tags: () => bucket.tags("cat", wrong),
      setTags: () => bucket.setTags("cat", {}, wrong),
      setRetention: () => bucket.setRetention("cat", undefined, wrong),
      setLegalHold: () => bucket.setLegalHold("cat", true, wrong),
      createUpload: () => bucket.createUpload("film", wrong),
      listUploads: () => bucket.listUploads(wrong),
      setConfig: () => bucket.setConfig(wrong),
      "upload.put": () => upload.put(1, "x", wrong),
      "upload.copy": () => upload.copy(1, { key: "cat" }, wrong),
      "upload.parts": () => upload.parts(wrong),
      "upload.complete": () => upload.complete([part], wrong),
    };
    for (const [name, call] of Object.entries(calls)) {
      const said = await call().then(
        () => "it was done",
        (error: unknown) => String(error),
      );
      expect([name, said]).toEqual([name, expect.stringMatching(/^TypeError: .*wrongOption/)]);
    }
    expect((await bucket.list()).objects.map(({ key }) => key)).toEqual(["cat"]);
  });
});

describe("input that is too large or of the wrong type", () => {
  it("is refused with an error that names it: keys, metadata, tags, headers", async () => {
    const { bucket } = await open();
    const many = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`tag ${index}`, "x"]));
    expect(await codeOf(bucket.put("cat", "x", { tags: many }))).toBe("TOO_LARGE");
    expect(await codeOf(bucket.put("cat", "x", { metadata: { a: "x".repeat(2048) } }))).toBe("TOO_LARGE");
    expect(await codeOf(bucket.put("cat", "x", { contentType: "x".repeat(1025) }))).toBe("TOO_LARGE");
    await expect(bucket.put("cat", "x", { metadata: { a: 1 } as never })).rejects.toThrow(TypeError);
    await expect(bucket.setTags("cat", { a: 1 } as never)).rejects.toThrow(TypeError);
    for (const key of [5, undefined, null]) await expect(bucket.put(key as never, "x")).rejects.toThrow(TypeError);
    for (const key of ["", "\ud800", "é".repeat(513)]) expect(await codeOf(bucket.get(key))).toBe("INVALID_NAME");
    // All that is allowed at once fits into a record.
    const tags = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`${i}`.repeat(128), "\u0001".repeat(256)]));
    const metadata = { a: "\u0001".repeat(2047) };
    const header = "\u0001".repeat(1024);
    const headers = { contentType: header, contentEncoding: header, contentDisposition: header, cacheControl: header };
    const key = "\u0001".repeat(1024);
    await bucket.put(key, "x", { tags, metadata, ...headers, contentLanguage: header, expires: header });
    expect(await bucket.tags(key)).toEqual(tags);
    expect(await bucket.head(key)).toMatchObject({ metadata, headers });
  });
});
