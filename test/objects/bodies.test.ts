// Bodies on every kind of disk: of any size, in ranges, compared with what was declared; and keys of
// every kind.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Ports } from "../../src/ports/ports.ts";
import { sites } from "../sites/sites.ts";
import { codeOf, newBucket, objectsOn, smallInline, textOf } from "./object-sites.ts";

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("the first part of a body that is long enough for a file of its own");
  throw new Error("the sender went away");
}

describe.each(sites)("bodies on %s", (_name, make) => {
  it("of any kind and size come back whole, in the slot or in a file of their own", async () => {
    const bucket = await newBucket(make, "enabled", smallInline);
    const long = "0123456789".repeat(30_000);
    for (const [text, body] of [
      ["", ""],
      ["short", "short"],
      ["sixteen bytes...", Buffer.from("sixteen bytes...")],
      ["seventeen bytes..", pieces("seventeen", " bytes..")],
      [long, pieces(long.slice(0, 100_001), "", long.slice(100_001))],
      [long, long],
    ] as const) {
      const { size, etag } = await bucket.put("cat", body);
      expect(size).toBe(text.length);
      expect(etag).toBe(createHash("md5").update(text).digest("hex"));
      expect((await textOf(bucket, "cat")) === text).toBe(true);
    }
  });

  it("are read in ranges, from either end", async () => {
    for (const inlineMax of [16, 1000]) {
      const bucket = await newBucket(make, "off", { inlineMax });
      await bucket.put("cat", "abcdefghijklmnopqrstuvwxyz");
      const read = async (start: number, end?: number): Promise<string> => {
        await using object = await bucket.get("cat", { range: { start, end } });
        return `${object.range?.start}-${object.range?.end} ${await object.text()}`;
      };
      expect(await read(0, 3)).toBe("0-3 abcd");
      expect(await read(20)).toBe("20-25 uvwxyz");
      expect(await read(-3)).toBe("23-25 xyz");
      expect(await read(24, 1000)).toBe("24-25 yz");
      await expect(bucket.get("cat", { range: { start: 26 } })).rejects.toMatchObject({
        code: "INVALID_RANGE",
        size: 26,
      });
    }
  });

  it("that are not what was declared are not stored, and leave nothing", async () => {
    const site = await objectsOn(make);
    const bucket = await (await site.open(smallInline)).createBucket("photos");
    const long = "a body that is long enough for a file of its own";
    const md5 = createHash("md5").update(long).digest("base64");
    for (const text of ["short", long]) {
      expect(await codeOf(bucket.put("cat", text, { size: 3 }))).toBe("BAD_DIGEST");
      expect(await codeOf(bucket.put("cat", text, { md5: "x" }))).toBe("BAD_DIGEST");
      const checksum = { algorithm: "SHA256", value: "x" } as const;
      expect(await codeOf(bucket.put("cat", text, { checksum }))).toBe("BAD_DIGEST");
    }
    expect(await codeOf(bucket.put("cat", failing()))).toBe("Error: the sender went away");
    expect(await codeOf(bucket.put("cat", 5 as never))).toMatch(/^TypeError/);
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
    expect(await filesBelow(site.directory, await site.openPorts())).toEqual([]);
    await bucket.put("cat", long, { size: long.length, md5 });
    expect(await filesBelow(site.directory, await site.openPorts())).toHaveLength(1);
  });

  it("of a put that is aborted are not stored, also when the source hangs", async () => {
    const bucket = await newBucket(make, "off", smallInline);
    const abort = new AbortController();
    async function* hanging(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("x");
      abort.abort(new Error("enough"));
      await new Promise(() => undefined);
    }
    await expect(bucket.put("cat", hanging(), { signal: abort.signal })).rejects.toThrow("enough");
    expect(await codeOf(bucket.get("cat"))).toBe("NO_SUCH_KEY");
  });

  it("have keys of every kind, each its own", async () => {
    const bucket = await newBucket(make, "off");
    const keys = [
      "a",
      "A",
      "a/",
      "a//b",
      "../a",
      "a/../b",
      "/",
      ".",
      "con",
      "nul\u0000",
      "😀",
      "é",
      "e\u0301",
      "x".repeat(1024),
    ];
    for (const key of keys) await bucket.put(key, `of ${key}`);
    for (const key of keys) expect(await textOf(bucket, key)).toBe(`of ${key}`);
    const listed = (await bucket.list()).objects.map(({ key }) => key);
    expect(listed).toEqual([...keys].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
    for (const key of ["", "x".repeat(1025), "\ud800"]) expect(await codeOf(bucket.put(key, "x"))).toBe("INVALID_NAME");
    await expect(bucket.put("a", "x", { ifMatsch: "x" } as never)).rejects.toThrow(/ifMatsch/);
  });
});

async function filesBelow(directory: string, { disk }: Ports): Promise<string[]> {
  const bucket = `${directory}/objects/buckets/photos`;
  const found: string[] = [];
  for (const incarnation of (await disk.list(bucket)).filter((name) => name !== "config"))
    for (const holder of await disk.list(`${bucket}/${incarnation}/bodies`))
      found.push(...(await disk.list(`${bucket}/${incarnation}/bodies/${holder}`)));
  return found;
}
