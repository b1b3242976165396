// Objects that are larger than the memory of the gateway may be: one put, parts, and ranges. HOLDFAST_S3_GIB makes
// them smaller than the 8 GiB that they have by default.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { describe, expect, it } from "vitest";
import { clientOf } from "../gateway-process.ts";
import { useGateway } from "./tool.ts";

const mebibyte = 1024 * 1024;
const gibibyte = 1024 * mebibyte;
const size = Number(process.env["HOLDFAST_S3_GIB"] ?? 8) * gibibyte;
/** S3 takes no more in one put. */
const putSize = Math.min(size, 5 * gibibyte);
const partSize = 128 * mebibyte;
/** Far less than a part. Node itself, and what it has not yet given back, are most of it. */
const memoryMax = 400 * mebibyte;
const timeoutMs = 3_600_000;

/** Each block of 1 MiB is another one, so that a block in the wrong place is found. */
function block(index: number): Buffer {
  const seed = createHash("sha256").update(String(index)).digest();
  const bytes = Buffer.alloc(mebibyte, seed);
  bytes.writeUInt32BE(index, 0);
  return bytes;
}

function blocks(from: number, bytes: number): Readable {
  function* all(): Generator<Buffer> {
    for (let index = 0; index < bytes / mebibyte; index++) yield block(from / mebibyte + index);
  }
  return Readable.from(all(), { objectMode: false, highWaterMark: mebibyte });
}

describe(`an object of ${size / gibibyte} GiB`, () => {
  const bench = useGateway();
  const peakOf = (): number =>
    Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${bench().gateway.pid}/status`, "utf8"))?.[1]) * 1024;

  async function checkRanges(client: s3.S3Client, Key: string, length: number): Promise<void> {
    for (const at of [0, Math.floor(length / 2 / mebibyte) * mebibyte, length - mebibyte]) {
      const Range = `bytes=${at}-${at + mebibyte - 1}`;
      const { Body, ContentRange } = await client.send(new s3.GetObjectCommand({ Bucket: "tools", Key, Range }));
      expect(ContentRange).toBe(`bytes ${at}-${at + mebibyte - 1}/${length}`);
      const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
      expect(Buffer.compare(bytes, block(at / mebibyte))).toBe(0);
    }
  }

  async function checkWhole(client: s3.S3Client, Key: string, length: number): Promise<void> {
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: "tools", Key }));
    const hash = createHash("md5");
    for await (const piece of Body as Readable) hash.update(piece as Uint8Array);
    const expected = createHash("md5");
    for (let index = 0; index < length / mebibyte; index++) expected.update(block(index));
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
  }

  it(
    "is uploaded by one put of at most 5 GiB, and read whole and in ranges, in constant memory",
    async () => {
      const client = clientOf(bench().gateway.url);
      const Body = blocks(0, putSize);
      await client.send(new s3.PutObjectCommand({ Bucket: "tools", Key: "put", Body, ContentLength: putSize }));
      await checkRanges(client, "put", putSize);
      await checkWhole(client, "put", putSize);
      expect(peakOf()).toBeLessThan(memoryMax);
      await client.send(new s3.DeleteObjectCommand({ Bucket: "tools", Key: "put" }));
      client.destroy();
    },
    timeoutMs,
  );

  it(
    "is uploaded in parts, four at a time, and read in ranges, in constant memory",
    async () => {
      const client = clientOf(bench().gateway.url);
      const where = { Bucket: "tools", Key: "parts" };
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand(where));
      const Parts: s3.CompletedPart[] = [];
      let next = 1;
      const worker = async (): Promise<void> => {
        while ((next - 1) * partSize < size) {
          const PartNumber = next++;
          const from = (PartNumber - 1) * partSize;
          const ContentLength = Math.min(partSize, size - from);
          const Body = blocks(from, ContentLength);
          const { ETag } = await client.send(
            new s3.UploadPartCommand({ ...where, UploadId, PartNumber, Body, ContentLength }),
          );
          Parts.push({ ETag, PartNumber });
        }
      };
      await Promise.all([1, 2, 3, 4].map(worker));
      Parts.sort((one, other) => (one.PartNumber ?? 0) - (other.PartNumber ?? 0));
      await client.send(new s3.CompleteMultipartUploadCommand({ ...where, UploadId, MultipartUpload: { Parts } }));
      await checkRanges(client, "parts", size);
      expect(peakOf()).toBeLessThan(memoryMax);
      client.destroy();
    },
    timeoutMs,
  );
});
