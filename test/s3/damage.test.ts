// The gateway beside damage: what cannot be read is 500 alone, and no listing passes it over.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { describe, expect, it, onTestFinished } from "vitest";
import { openObjects } from "../../src/objects/index.ts";
import { startS3Gateway } from "../../src/s3/index.ts";

const Bucket = "shop";
const owner = { accessKeyId: "OWNER", secretAccessKey: "owner secret" };
const other = { accessKeyId: "OTHER", secretAccessKey: "other secret", account: "other" } as const;

interface Shop {
  readonly directory: string;
  readonly client: s3.S3Client;
  clientOf(credentials: typeof owner): s3.S3Client;
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Another gateway on the same folder has nothing in memory: it meets what is on the disk. */
async function openShop(directory = newDirectory()): Promise<Shop> {
  const objects = await openObjects(directory);
  const gateway = await startS3Gateway(objects, { port: 0, credentials: [owner, other] });
  const clients: s3.S3Client[] = [];
  onTestFinished(async () => {
    for (const each of clients) each.destroy();
    await gateway.close();
    await objects.close();
  });
  const clientOf = ({ accessKeyId, secretAccessKey }: typeof owner): s3.S3Client => {
    const client = new s3.S3Client({
      endpoint: gateway.url,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
      maxAttempts: 1,
    });
    clients.push(client);
    return client;
  };
  return { directory, client: clientOf(owner), clientOf };
}

/** Ten versions of one key, and another key; the slot with this index has a flipped bit. */
async function damagedShop(slot: number): Promise<Shop & { readonly ids: readonly string[] }> {
  const shop = await openShop();
  const { client } = shop;
  await client.send(new s3.CreateBucketCommand({ Bucket }));
  await client.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: "Enabled" } }));
  const ids: string[] = [];
  for (let index = 0; index < 10; index++) {
    const put = await client.send(new s3.PutObjectCommand({ Bucket, Key: "cat", Body: `text ${index}` }));
    ids.push(put.VersionId ?? "");
  }
  await client.send(new s3.PutObjectCommand({ Bucket, Key: "dog", Body: "beside it" }));
  flipIn(
    filesIn(shop.directory)
      .filter((path) => path.includes("/cat~"))
      .sort()[slot] ?? "",
    '"atMs"',
  );
  return { ...(await openShop(shop.directory)), ids };
}

function filesIn(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function flipIn(path: string, text: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text);
  expect(at).toBeGreaterThanOrEqual(0);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

async function statusOf(call: Promise<{ readonly $metadata: { readonly httpStatusCode?: number } }>): Promise<number> {
  try {
    return (await call).$metadata.httpStatusCode ?? 0;
  } catch (error) {
    return (error as s3.S3ServiceException).$metadata.httpStatusCode ?? 0;
  }
}

async function textOf(client: s3.S3Client, Key: string, VersionId?: string): Promise<string | undefined> {
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key, VersionId }));
  return await Body?.transformToString();
}

describe("one flipped bit in the record of one of ten versions", () => {
  it.each([0, 4, 9])("makes only that version answer 500, and both listings answer 200 (slot %i)", async (slot) => {
    const { client, ids } = await damagedShop(slot);
    for (const [index, VersionId] of ids.entries()) {
      const wanted = index === slot ? 500 : 200;
      expect(await statusOf(client.send(new s3.HeadObjectCommand({ Bucket, Key: "cat", VersionId })))).toBe(wanted);
      expect(await statusOf(client.send(new s3.GetObjectCommand({ Bucket, Key: "cat", VersionId })))).toBe(wanted);
    }
    const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
    // The damaged one among them, without a size: a client that mirrors the bucket must not take it for deleted.
    expect(
      Versions.filter(({ Key }) => Key === "cat")
        .map(({ VersionId = "" }) => VersionId)
        .sort(),
    ).toEqual([...ids].sort());
    expect(Versions.find(({ VersionId }) => VersionId === ids[slot])).toMatchObject({ Size: 0, ETag: '""' });
    expect(Versions.filter(({ Key, IsLatest }) => Key === "cat" && IsLatest).map(({ VersionId }) => VersionId)).toEqual(
      [ids[9]],
    );
    const listed = await client.send(new s3.ListObjectsV2Command({ Bucket }));
    expect([listed.KeyCount, listed.Contents?.map(({ Key, Size }) => `${Key} ${Size}`)]).toEqual([
      2,
      [slot === 9 ? "cat 0" : "cat 6", "dog 9"],
    ]);
    const old = await client.send(new s3.ListObjectsCommand({ Bucket }));
    expect(old.Contents?.map(({ Key }) => Key)).toEqual(["cat", "dog"]);
  });

  it("in the current version never serves an older one; a later put can be read", async () => {
    const { client, ids } = await damagedShop(9);
    expect(await statusOf(client.send(new s3.GetObjectCommand({ Bucket, Key: "cat" })))).toBe(500);
    expect(await statusOf(client.send(new s3.HeadObjectCommand({ Bucket, Key: "cat" })))).toBe(500);
    await client.send(new s3.PutObjectCommand({ Bucket, Key: "cat", Body: "after" }));
    expect(await textOf(client, "cat")).toBe("after");
    const { Contents } = await client.send(new s3.ListObjectsV2Command({ Bucket }));
    expect(Contents?.map(({ Key, Size }) => `${Key} ${Size}`)).toEqual(["cat 5", "dog 9"]);
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "cat", VersionId: ids[9] }));
    const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket, Prefix: "cat" }));
    expect(Versions.map(({ VersionId }) => VersionId)).not.toContain(ids[9]);
    expect(Versions).toHaveLength(10);
    expect(await textOf(client, "cat", ids[8])).toBe("text 8");
  });

  it("is removed by a delete of that version, and the previous version becomes current", async () => {
    const { client, ids } = await damagedShop(9);
    await client.send(new s3.DeleteObjectCommand({ Bucket, Key: "cat", VersionId: ids[9] }));
    expect(await textOf(client, "cat")).toBe("text 8");
  });

  it("is reported by a header of the listing, and each page keeps its limit", async () => {
    const { client } = await damagedShop(9);
    const headers: (string | undefined)[] = [];
    client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        headers.push((result.response as { headers: Record<string, string> }).headers["x-holdfast-damaged"]);
        return result;
      },
      { step: "deserialize", priority: "low" },
    );
    const keys: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await client.send(new s3.ListObjectsV2Command({ Bucket, MaxKeys: 1, ContinuationToken }));
      keys.push(...(page.Contents ?? []).map(({ Key = "" }) => Key));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    expect(keys).toEqual(["cat", "dog"]);
    expect(headers).toEqual(["1", undefined]);
  });
});

describe("beside a damaged", () => {
  it("bucket, the others are listed and used; only the operator sees the damaged one", async () => {
    const { directory, client, clientOf } = await openShop();
    for (const name of ["cats", "dogs"]) await client.send(new s3.CreateBucketCommand({ Bucket: name }));
    const theirs = clientOf(other);
    await theirs.send(new s3.CreateBucketCommand({ Bucket: "theirs" }));
    const [config] = filesIn(directory).filter((path) => /cats\/config\/[0-9]+-[^/]+\/[0-9]+$/.test(path));
    flipIn(config ?? "", '"versioning"');
    const again = await openShop(directory);
    const namesFor = async (credentials: typeof owner): Promise<(string | undefined)[]> => {
      const each = again.clientOf(credentials);
      const put = { Bucket: credentials === owner ? "dogs" : "theirs", Key: "one", Body: "1" };
      await each.send(new s3.PutObjectCommand(put));
      expect(await statusOf(each.send(new s3.ListObjectsV2Command({ Bucket: "cats" })))).toBe(500);
      return ((await each.send(new s3.ListBucketsCommand({}))).Buckets ?? []).map(({ Name }) => Name);
    };
    expect(await namesFor(owner)).toEqual(["cats", "dogs", "theirs"]);
    expect(await namesFor(other)).toEqual(["theirs"]);
  });

  it("upload, the others are listed; its parts answer 500, and it can be aborted", async () => {
    const { directory, client } = await openShop();
    await client.send(new s3.CreateBucketCommand({ Bucket }));
    const ids: string[] = [];
    for (const Key of ["a", "b"]) {
      const { UploadId = "" } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
      ids.push(UploadId);
    }
    const record = filesIn(directory).find((path) => path.includes(`${ids[0]}/upload.json`));
    flipIn(record ?? "", '"facts"');
    const { Uploads = [] } = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    expect(Uploads.map(({ Key, UploadId }) => `${Key} ${UploadId}`)).toEqual([`a ${ids[0]}`, `b ${ids[1]}`]);
    const broken = { Bucket, Key: "a", UploadId: ids[0] };
    expect(await statusOf(client.send(new s3.ListPartsCommand(broken)))).toBe(500);
    expect(await statusOf(client.send(new s3.AbortMultipartUploadCommand(broken)))).toBe(204);
    const left = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
    expect(left.Uploads?.map(({ UploadId }) => UploadId)).toEqual([ids[1]]);
  });
});
