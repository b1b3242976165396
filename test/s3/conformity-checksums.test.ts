// What S3 answers about checksums and sizes of uploads in parts, and about the attributes of an object.
import { createHash } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, sendSigned, startSite, type Site } from "./conformity-gateway.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket();
});
afterAll(() => site.close());

const Key = "film";
const sumOf = (text: string): string => createHash("sha256").update(text).digest("base64");

describe("an upload with checksums", () => {
  let UploadId: string | undefined;
  let part: s3.CompletedPart;
  beforeAll(async () => {
    const created = await site.client.send(
      new s3.CreateMultipartUploadCommand({ Bucket, Key, ChecksumAlgorithm: "SHA256" }),
    );
    ({ UploadId } = created);
    const sent = { Bucket, Key, UploadId, PartNumber: 1, Body: "one", ChecksumAlgorithm: "SHA256" } as const;
    const { ETag, ChecksumSHA256 } = await site.client.send(new s3.UploadPartCommand(sent));
    part = { PartNumber: 1, ETag, ChecksumSHA256 };
  });
  const complete = (
    parts: s3.CompletedPart[],
    more: Partial<s3.CompleteMultipartUploadCommandInput> = {},
  ): Promise<unknown> => {
    const input = { Bucket, Key, UploadId, MultipartUpload: { Parts: parts }, ...more };
    return site.client.send(new s3.CompleteMultipartUploadCommand(input));
  };

  const bad: Readonly<Record<string, readonly [() => Promise<unknown>, string]>> = {
    "a part without its checksum": [() => complete([{ ...part, ChecksumSHA256: undefined }]), "InvalidRequest"],
    "another checksum": [() => complete([{ ...part, ChecksumSHA256: sumOf("two") }]), "InvalidPart"],
    "a checksum that is none": [() => complete([{ ...part, ChecksumSHA256: "none" }]), "InvalidArgument"],
    "two checksums": [() => complete([{ ...part, ChecksumCRC32: "AAAAAA==" }]), "InvalidArgument"],
    "a type that is none": [() => complete([part], { ChecksumType: "HALF" as never }), "InvalidRequest"],
    "another type": [() => complete([part], { ChecksumType: "FULL_OBJECT" }), "InvalidRequest"],
    "a checksum of the object that is none": [() => complete([part], { ChecksumSHA256: "none" }), "InvalidRequest"],
    "another size": [() => complete([part], { MpuObjectSize: 4 }), "InvalidRequest"],
    "the number 0 for a part": [() => complete([{ ...part, PartNumber: 0 }]), "InvalidArgument"],
  };
  it.each(Object.entries(bad))("is not completed with %s", async (_, [call, code]) => {
    expect(await failureOf(call())).toEqual([code, 400]);
  });

  it("is completed with matching checksums", async () => {
    await complete([part], { ChecksumType: "COMPOSITE", MpuObjectSize: 3 });
    expect((await site.client.send(new s3.HeadObjectCommand({ Bucket, Key }))).ContentLength).toBe(3);
    const asked = new s3.GetObjectAttributesCommand({ Bucket, Key, ObjectAttributes: ["ObjectParts"] });
    const { ObjectParts } = await site.client.send(asked);
    expect(ObjectParts?.Parts).toEqual([{ PartNumber: 1, Size: 3, ChecksumSHA256: sumOf("one") }]);
  });

  it("accepts a checksum type only with an algorithm, in any letter case", async () => {
    const begin = async (headers: Record<string, string>): Promise<unknown> => {
      const answer = await sendSigned(site.port, {
        method: "POST",
        path: `/${Bucket}/x`,
        query: { uploads: "" },
        headers,
      });
      return answer.code ?? answer.headers["x-amz-checksum-type"];
    };
    expect(await begin({ "x-amz-checksum-type": "COMPOSITE" })).toBe("InvalidRequest");
    expect(await begin({ "x-amz-checksum-type": "HALF", "x-amz-checksum-algorithm": "CRC32" })).toBe("InvalidRequest");
    expect(await begin({ "x-amz-checksum-type": "full_object", "x-amz-checksum-algorithm": "crc32" })).toBe(
      "FULL_OBJECT",
    );
  });
});

it("unknown attribute names are refused before the object is looked up", async () => {
  const asked = async (names: string): Promise<unknown> => {
    const headers = { "x-amz-object-attributes": names };
    return (await sendSigned(site.port, { path: `/${Bucket}/none`, query: { attributes: "" }, headers })).code;
  };
  expect(await asked("")).toBe("InvalidRequest");
  expect(await asked("ETag,Colour")).toBe("InvalidArgument");
  expect(await asked("ETag, ObjectSize")).toBe("NoSuchKey");
});

it("a Content-MD5 must be 16 bytes in Base64, whatever its last bits are", async () => {
  const put = async (md5: string): Promise<unknown> =>
    (await sendSigned(site.port, { method: "PUT", path: `/${Bucket}/m`, headers: { "content-md5": md5 }, body: "x" }))
      .code;
  expect(await put("uU0nuZNNPgilLlLX2n2r+s==")).toBe("BadDigest");
  expect(await put("YWJj")).toBe("InvalidDigest");
  const right = createHash("md5").update("x").digest("base64");
  expect(await put(right)).toBe(undefined);
});

it("a copy from an invalid bucket name is refused", async () => {
  for (const source of ["192.168.1.1/k", "Not_A_Bucket/k", "bucket/%ZZ", "bucket"]) {
    const headers = { "x-amz-copy-source": source };
    const answer = await sendSigned(site.port, { method: "PUT", path: `/${Bucket}/c`, headers });
    expect(answer).toMatchObject({ status: 400, code: "InvalidArgument" });
  }
});

it("a null version is named null in a bucket with versioning", async () => {
  const bucket = await site.newBucket();
  await site.client.send(new s3.PutObjectCommand({ Bucket: bucket, Key, Body: "x" }));
  const idOf = async (): Promise<unknown> => [
    (await site.client.send(new s3.GetObjectCommand({ Bucket: bucket, Key }))).VersionId,
    (await site.client.send(new s3.HeadObjectCommand({ Bucket: bucket, Key }))).VersionId,
  ];
  expect(await idOf()).toEqual([undefined, undefined]);
  const VersioningConfiguration = { Status: "Enabled" } as const;
  await site.client.send(new s3.PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration }));
  expect(await idOf()).toEqual(["null", "null"]);
});
