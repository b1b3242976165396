// Bodies on every kind of disk: of any size, in ranges, compared with what was declared; and keys of
// every kind.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Ports } from "../../src/ports/ports.ts";
import { makeRealSite, sites } from "../sites/sites.ts";
import { codeOf, newBucket, objectsOn, smallInline } from "./object-sites.ts";

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("the first part of a body that is long enough for a file of its own");
  throw new Error("the sender went away");
}

describe.each(sites)("bodies on %s", (_name, make) => {
  it("that do not match the declared size or digest are not stored and leave nothing", async () => {
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
});

async function filesBelow(directory: string, { disk }: Ports): Promise<string[]> {
  const bucket = `${directory}/objects/buckets/photos`;
  const found: string[] = [];
  for (const incarnation of (await disk.list(bucket)).filter((name) => name !== "config"))
    for (const holder of await disk.list(`${bucket}/${incarnation}/bodies`))
      found.push(...(await disk.list(`${bucket}/${incarnation}/bodies/${holder}`)));
  return found;
}

describe("a body that is hashed by another thread", () => {
  const size = 8 * 1024 * 1024 + 7;
  const content = Buffer.alloc(size, "holdfast ");

  async function* streamed(): AsyncGenerator<Uint8Array> {
    // One buffer for all chunks, as a source may have.
    const chunk = Buffer.alloc(100_000);
    for (let at = 0; at < size; at += chunk.length) yield chunk.subarray(0, content.copy(chunk, 0, at));
  }

  it("is read back whole, with the right digests", async () => {
    const bucket = await newBucket(makeRealSite);
    for (const body of [content, streamed()]) {
      const { etag, checksum } = await bucket.put("film", body, { size, checksum: { algorithm: "SHA256" } });
      expect(etag).toBe(createHash("md5").update(content).digest("hex"));
      expect(checksum?.value).toBe(createHash("sha256").update(content).digest("base64"));
      await using object = await bucket.get("film");
      expect(content.equals(await object.bytes())).toBe(true);
    }
  });

  it("is not stored if the source fails or is too short, and the thread accepts the next body", async () => {
    const site = await objectsOn(makeRealSite);
    const bucket = await (await site.open()).createBucket("photos");
    for (let attempt = 0; attempt < 5; attempt++) {
      await expect(bucket.put("film", failing(), { size })).rejects.toThrow("the sender went away");
      expect(await codeOf(bucket.put("film", pieces("x".repeat(100_000)), { size }))).toBe("BAD_DIGEST");
    }
    await bucket.put("film", content, { size });
    expect((await bucket.head("film")).size).toBe(size);
  });
});
