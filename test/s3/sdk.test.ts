// The gateway with the client that most programs have: the AWS SDK, on an object store in a folder.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { beforeAll, describe, expect, it } from "vitest";
import { openObjects } from "../../src/objects/index.ts";
import { startS3Gateway, type S3Credentials, type S3Gateway } from "../../src/s3/index.ts";

const owner = { accessKeyId: "OWNER", secretAccessKey: "owner secret" };
const reader = { accessKeyId: "READER", secretAccessKey: "reader secret", rights: "read-only" } as const;
const confined = {
  accessKeyId: "CONFINED",
  secretAccessKey: "secret",
  rights: "read-write",
  only: ["shop/in/"],
} as const;

let directory = "";
let gateways: S3Gateway[] = [];
let clients: s3.S3Client[] = [];
const [Bucket, Key] = ["shop", "a b/ä+~.txt"];

function clientOf(gateway: S3Gateway, { accessKeyId, secretAccessKey }: S3Credentials = owner): s3.S3Client {
  return new s3.S3Client({
    endpoint: gateway.url,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 1,
  });
}

/** Three gateways on one folder, as three machines would have them. */
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const opened = await Promise.all([0, 1, 2].map(() => openObjects(directory)));
  const credentials = [owner, reader, confined];
  gateways = await Promise.all(opened.map((objects) => startS3Gateway(objects, { port: 0, credentials })));
  clients = gateways.map((gateway) => clientOf(gateway));
  await client().send(new s3.CreateBucketCommand({ Bucket }));
  return async () => {
    for (const each of clients) each.destroy();
    await Promise.all(gateways.map((gateway) => gateway.close()));
    await Promise.all(opened.map((objects) => objects.close()));
    rmSync(directory, { recursive: true, force: true });
  };
});

const client = (index = 0): s3.S3Client => clients[index] as s3.S3Client;

async function failureOf(call: Promise<unknown>): Promise<{ name: string; status: number | undefined }> {
  try {
    await call;
  } catch (error) {
    const { name, $metadata } = error as s3.S3ServiceException;
    return { name, status: $metadata.httpStatusCode };
  }
  throw new Error("it did not fail");
}

async function textOf(key: string, more: Partial<s3.GetObjectCommandInput> = {}): Promise<string> {
  const { Body } = await client().send(new s3.GetObjectCommand({ Bucket, Key: key, ...more }));
  return (await Body?.transformToString()) ?? "";
}

describe("objects", () => {
  it("are read back with type, metadata, tags and checksum, by range and through another gateway", async () => {
    const put = {
      Bucket,
      Key,
      Body: "hello",
      ContentType: "text/plain",
      Metadata: { who: "äda" },
      Tagging: "x=1&y=%20",
    };
    await client().send(new s3.PutObjectCommand(put));
    const got = await client(1).send(new s3.GetObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
    expect(await got.Body?.transformToString()).toBe("hello");
    expect(got).toMatchObject({ ContentType: "text/plain", Metadata: { who: "äda" }, TagCount: 2, ContentLength: 5 });
    expect(got.ChecksumCRC32).toBe("NhCmhg==");
    expect(got.ETag).toBe('"5d41402abc4b2a76b9719d911017c592"');
    expect(await textOf(Key, { Range: "bytes=1-3" })).toBe("ell");
    expect(await textOf(Key, { Range: "bytes=-2" })).toBe("lo");
    const beyond = client().send(new s3.GetObjectCommand({ Bucket, Key, Range: "bytes=9-" }));
    expect(await failureOf(beyond)).toMatchObject({ status: 416 });
  });

  it("are streamed with a trailing checksum, and the framing is not stored", async () => {
    const body = Readable.from([Buffer.alloc(100_000, 1), Buffer.alloc(50_001, 2)]);
    await client().send(new s3.PutObjectCommand({ Bucket, Key: "stream", Body: body, ContentLength: 150_001 }));
    const got = await client().send(new s3.GetObjectCommand({ Bucket, Key: "stream" }));
    expect((await got.Body?.transformToByteArray())?.length).toBe(150_001);
    expect(got.ContentEncoding).toBe(undefined);
  });

  it.each(["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const)("keep a checksum %s", async (algorithm) => {
    // The SDK computes CRC64NVME only with a native module.
    if (algorithm === "CRC64NVME") return;
    const put = new s3.PutObjectCommand({ Bucket, Key: algorithm, Body: "x", ChecksumAlgorithm: algorithm });
    const { [`Checksum${algorithm}` as const]: value } = await client().send(put);
    const head = await client().send(new s3.HeadObjectCommand({ Bucket, Key: algorithm, ChecksumMode: "ENABLED" }));
    expect(value).toBeDefined();
    expect(head[`Checksum${algorithm}` as const]).toBe(value);
  });

  it("are refused with BadDigest if the checksum is wrong, and nothing is stored", async () => {
    const put = new s3.PutObjectCommand({ Bucket, Key: "bad", Body: "x", ChecksumCRC32: "AAAAAA==" });
    expect(await failureOf(client().send(put))).toEqual({ name: "BadDigest", status: 400 });
    expect(await failureOf(client().send(new s3.HeadObjectCommand({ Bucket, Key: "bad" })))).toMatchObject({
      status: 404,
    });
  });

  it("of any size are uploaded in parts through several gateways, without a copy", async () => {
    const size = 12 * 1024 * 1024;
    const params = { Bucket, Key: "big", Body: Buffer.alloc(size, 7) };
    const { ETag } = await new Upload({ client: client(), params, partSize: 5 * 1024 * 1024 }).done();
    expect(ETag).toMatch(/-3"$/);
    const got = await client(2).send(new s3.GetObjectCommand({ Bucket, Key: "big" }));
    expect((await got.Body?.transformToByteArray())?.length).toBe(size);
  });

  it("are copied, and deleted one by one or many at a time", async () => {
    await client().send(new s3.PutObjectCommand({ Bucket, Key: "from", Body: "1", Tagging: "t=1" }));
    await client().send(new s3.CopyObjectCommand({ Bucket, Key: "to", CopySource: `${Bucket}/from` }));
    expect(await textOf("to")).toBe("1");
    const { TagSet } = await client().send(new s3.GetObjectTaggingCommand({ Bucket, Key: "to" }));
    expect(TagSet).toEqual([{ Key: "t", Value: "1" }]);
    const Delete = { Objects: [{ Key: "from" }, { Key: "to" }, { Key: "never" }] };
    const { Deleted } = await client().send(new s3.DeleteObjectsCommand({ Bucket, Delete }));
    expect(Deleted).toHaveLength(3);
    expect(await failureOf(client().send(new s3.HeadObjectCommand({ Bucket, Key: "to" })))).toMatchObject({
      status: 404,
    });
  });
});

describe("versions", () => {
  it("five concurrent puts of one key are five versions", async () => {
    await client().send(new s3.CreateBucketCommand({ Bucket: "versioned" }));
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await client().send(new s3.PutBucketVersioningCommand({ Bucket: "versioned", VersioningConfiguration }));
    const put = (index: number): Promise<s3.PutObjectCommandOutput> =>
      client(index % 3).send(new s3.PutObjectCommand({ Bucket: "versioned", Key: "k", Body: `v${index}` }));
    const puts = await Promise.all([0, 1, 2, 3, 4].map(put));
    const ids = puts.map(({ VersionId }) => VersionId);
    expect(new Set(ids).size).toBe(5);
    const { Versions = [] } = await client().send(new s3.ListObjectVersionsCommand({ Bucket: "versioned" }));
    expect(new Set(Versions.map(({ VersionId }) => VersionId))).toEqual(new Set(ids));
    for (const [index, VersionId] of ids.entries())
      expect(await textOf("k", { Bucket: "versioned", VersionId })).toBe(`v${index}`);
  });

  it("exactly one of 24 puts with If-None-Match *, through three gateways, succeeds", async () => {
    const put = async (index: number): Promise<string> =>
      await client(index % 3)
        .send(new s3.PutObjectCommand({ Bucket, Key: "first", Body: `${index}`, IfNoneMatch: "*" }))
        .then(
          () => "won",
          (error: unknown) => (error as Error).name,
        );
    const answers = await Promise.all(Array.from({ length: 24 }, (_, index) => put(index)));
    expect(answers.filter((answer) => answer === "won")).toHaveLength(1);
    expect(answers.filter((answer) => answer === "PreconditionFailed")).toHaveLength(23);
  });

  it("a deletion adds a marker, and old versions can still be read", async () => {
    const bucket = "versioned";
    const { VersionId } = await client().send(new s3.PutObjectCommand({ Bucket: bucket, Key: "d", Body: "1" }));
    const deleted = await client().send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: "d" }));
    expect(deleted.DeleteMarker).toBe(true);
    const gone = client().send(new s3.GetObjectCommand({ Bucket: bucket, Key: "d" }));
    expect(await failureOf(gone)).toEqual({ name: "NoSuchKey", status: 404 });
    expect(await textOf("d", { Bucket: bucket, VersionId })).toBe("1");
    const byId = client().send(new s3.GetObjectCommand({ Bucket: bucket, Key: "d", VersionId: deleted.VersionId }));
    expect(await failureOf(byId)).toMatchObject({ status: 405 });
  });
});

describe("listings", () => {
  it("have pages and common prefixes", async () => {
    await client().send(new s3.CreateBucketCommand({ Bucket: "listed" }));
    for (const key of ["a", "b/1", "b/2", "c/x", "d"])
      await client().send(new s3.PutObjectCommand({ Bucket: "listed", Key: key, Body: key }));
    const found: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await client().send(
        new s3.ListObjectsV2Command({ Bucket: "listed", Delimiter: "/", MaxKeys: 2, ContinuationToken }),
      );
      found.push(...(page.Contents ?? []).map((entry) => entry.Key ?? ""));
      found.push(...(page.CommonPrefixes ?? []).map((entry) => entry.Prefix ?? ""));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    expect(found.sort()).toEqual(["a", "b/", "c/", "d"]);
  });
});

describe("rights", () => {
  it("a read-only key pair cannot write, and a confined one sees only its prefix", async () => {
    const [first] = gateways as [S3Gateway];
    const reading = clientOf(first, reader);
    expect(await failureOf(reading.send(new s3.PutObjectCommand({ Bucket, Key: "r", Body: "" })))).toEqual({
      name: "AccessDenied",
      status: 403,
    });
    await reading.send(new s3.ListObjectsV2Command({ Bucket }));
    const narrow = clientOf(first, confined);
    await narrow.send(new s3.PutObjectCommand({ Bucket, Key: "in/1", Body: "" }));
    for (const call of [
      () => narrow.send(new s3.PutObjectCommand({ Bucket, Key: "out/1", Body: "" })),
      () => narrow.send(new s3.ListObjectsV2Command({ Bucket })),
      () => narrow.send(new s3.GetObjectCommand({ Bucket, Key: "nothing there" })),
    ])
      expect(await failureOf(call())).toEqual({ name: "AccessDenied", status: 403 });
    for (const each of [reading, narrow]) each.destroy();
  });

  it("an unsigned request learns nothing about a bucket, and a presigned URL suffices", async () => {
    const [first] = gateways as [S3Gateway];
    for (const path of ["/", `/${Bucket}`, `/${Bucket}/first`, `/${Bucket}/nothing/at/all`]) {
      const answer = await fetch(first.url + path);
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain("<Code>AccessDenied</Code>");
    }
    const url = await getSignedUrl(client(), new s3.GetObjectCommand({ Bucket, Key }), { expiresIn: 60 });
    expect(await (await fetch(url)).text()).toBe("hello");
    expect((await fetch(url.replace("X-Amz-Expires=60", "X-Amz-Expires=61"))).status).toBe(403);
  });
});

describe("settings of a bucket", () => {
  it("are returned as they were put", async () => {
    const Rules = [{ ID: "r", Status: "Enabled", Filter: { Prefix: "tmp/" }, Expiration: { Days: 3 } } as const];
    await client().send(new s3.PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }));
    const lifecycle = await client(1).send(new s3.GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(lifecycle.Rules).toMatchObject(Rules);
    const CORSRules = [{ AllowedMethods: ["GET"], AllowedOrigins: ["https://shop.example"] }];
    await client().send(new s3.PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules } }));
    const [first] = gateways as [S3Gateway];
    const ask = async (origin: string): Promise<number> => {
      const headers = { origin, "access-control-request-method": "GET" };
      return (await fetch(`${first.url}/${Bucket}/x`, { method: "OPTIONS", headers })).status;
    };
    expect(await ask("https://shop.example")).toBe(200);
    expect(await ask("https://other.example")).toBe(403);
  });

  it("that are not supported are refused by name", async () => {
    const call = client().send(new s3.GetBucketMetricsConfigurationCommand({ Bucket, Id: "all" }));
    expect(await failureOf(call)).toEqual({ name: "NotImplemented", status: 501 });
  });

  it("a bucket is deleted only if it is empty", async () => {
    expect(await failureOf(client().send(new s3.DeleteBucketCommand({ Bucket })))).toEqual({
      name: "BucketNotEmpty",
      status: 409,
    });
    await client().send(new s3.CreateBucketCommand({ Bucket: "short-lived" }));
    await client(1).send(new s3.DeleteBucketCommand({ Bucket: "short-lived" }));
    const head = client(2).send(new s3.HeadBucketCommand({ Bucket: "short-lived" }));
    expect(await failureOf(head)).toMatchObject({ status: 404 });
  });
});
