// What a front such as the S3 gateway keeps with a store and asks of it: access lists, documents,
// parts, and the checksum of an object that was uploaded in parts.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { ChecksumAlgorithm } from "../../src/objects/model/entry.ts";
import { startChecksum } from "../../src/format/running-checksum.ts";
import { local, World } from "../sites/world.ts";
import { openStorage } from "../../src/objects/bucket/open-objects.ts";
import type { Bucket } from "../../src/objects/model/bucket.ts";
import { DirectoryObjects } from "../../src/objects/objects.ts";
import { codeOf } from "./object-sites.ts";

const texts = ["the first part. ".repeat(700), "x", "", "the last part"];

async function newBuckets(): Promise<readonly [Bucket, Bucket]> {
  const world = new World({ volume: local });
  await world.ports("maker").disk.mkdir("/objects");
  const open = async (process: string): Promise<DirectoryObjects> =>
    new DirectoryObjects(await openStorage(world.ports(process, process), "/objects", { leaseMs: 1_000_000 }));
  const made = await (await open("ada")).createBucket("photos", { versioning: "enabled", objectLock: true });
  return [made, await (await open("bob")).bucket("photos")];
}

function digestOf(algorithm: ChecksumAlgorithm, bytes: string | Uint8Array): string {
  const running = startChecksum(algorithm);
  running.update(Buffer.from(bytes as string));
  return running.value();
}

describe("a multipart upload", () => {
  it.each(["CRC32", "CRC32C", "CRC64NVME"] as const)(
    "has the %s of all its bytes, combined from its parts",
    async (algorithm) => {
      const [bucket] = await newBuckets();
      const upload = await bucket.createUpload("film", { checksum: { algorithm, type: "full" } });
      const parts = [];
      for (const [index, text] of texts.entries()) parts.push(await upload.put(index + 1, text));
      const value = digestOf(algorithm, texts.join(""));
      const wrong = { algorithm, value: digestOf(algorithm, "other") };
      expect(await codeOf(upload.complete(parts, { checksum: wrong }))).toBe("BAD_DIGEST");
      const { checksum, partSizes } = await upload.complete(parts, { checksum: { algorithm, value } });
      expect(checksum).toEqual({ algorithm, type: "full", value });
      expect(partSizes).toEqual(texts.map(({ length }) => length));
      if (algorithm === "CRC32") expect(Buffer.from(value, "base64").readUInt32BE()).toBe(crc32(texts.join("")));
    },
  );

  it("has a composite checksum of its parts, and refuses a part with a wrong one", async () => {
    const [bucket, other] = await newBuckets();
    const { id } = await bucket.createUpload("film", { checksum: { algorithm: "SHA256" } });
    const upload = await other.upload("film", id);
    expect(upload.checksum).toEqual({ algorithm: "SHA256", type: "composite" });
    const parts = [await upload.put(1, "one"), await upload.put(2, "two")];
    const [first, second] = parts as [(typeof parts)[0], (typeof parts)[0]];
    const mixed = [{ ...first, checksum: second.checksum }, second];
    expect(await codeOf(upload.complete(mixed))).toBe("INVALID_PART");
    const { checksum } = await upload.complete(parts);
    const hashes = ["one", "two"].map((text) => createHash("sha256").update(text).digest());
    const value = createHash("sha256").update(Buffer.concat(hashes)).digest("base64");
    expect(checksum).toEqual({ algorithm: "SHA256", type: "composite", value: `${value}-2` });
    const whole = { checksum: { algorithm: "SHA1", type: "full" } } as const;
    await expect(bucket.createUpload("x", whole)).rejects.toThrow(TypeError);
  });
});

it("an ACL belongs to a version, and changing it adds no version", async () => {
  const [bucket, other] = await newBuckets();
  const { versionId } = await bucket.put("cat", "one", { acl: "a list", tags: { a: "1" } });
  await bucket.put("cat", "two");
  expect(await other.head("cat", { versionId })).toMatchObject({ acl: "a list", tagCount: 1 });
  expect((await other.head("cat")).acl).toBe(undefined);
  await other.setAcl("cat", "another", { versionId });
  expect(await bucket.head("cat", { versionId })).toMatchObject({ acl: "another", tagCount: 1 });
});

it("two processes that change different documents concurrently lose neither", async () => {
  const [bucket, other] = await newBuckets();
  await Promise.all([
    ...["a", "b", "c", "d"].map((name) => bucket.setDocument(name, name)),
    ...["e", "f", "g", "h"].map((name) => other.setDocument(name, name, { tags: { last: name } })),
  ]);
  await bucket.setDocument("a", undefined);
  const { documents } = await other.config();
  expect(Object.keys(documents).sort()).toEqual(["b", "c", "d", "e", "f", "g", "h"]);
});

it("governance changes to compliance, or back, only by bypassing governance", async () => {
  const [bucket] = await newBuckets();
  const until = new Date(Date.now() + 86_400_000);
  await bucket.put("cat", "one", { retention: { mode: "governance", until } });
  const strict = { mode: "compliance", until } as const;
  expect(await codeOf(bucket.setRetention("cat", strict))).toBe("RETAINED");
  await bucket.setRetention("cat", strict, { bypassGovernance: true });
  const loose = { mode: "governance", until } as const;
  expect(await codeOf(bucket.setRetention("cat", loose, { bypassGovernance: true }))).toBe("RETAINED");
});
