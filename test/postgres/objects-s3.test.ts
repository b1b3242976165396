// The S3 gateway on an object store in PostgreSQL, with the AWS SDK.
import { randomUUID } from "node:crypto";
import * as s3 from "@aws-sdk/client-s3";
import { expect, it, onTestFinished } from "vitest";
import { startS3Gateway } from "../../src/s3/index.ts";
import { openPgStore } from "./stores.ts";

const Bucket = "shop";
const credentials = { accessKeyId: "OWNER", secretAccessKey: "owner secret" };

async function openClient(store: string): Promise<s3.S3Client> {
  const objects = await (await openPgStore(store)).objects();
  const gateway = await startS3Gateway(objects, { port: 0, credentials: [credentials] });
  onTestFinished(() => gateway.close());
  return new s3.S3Client({
    endpoint: gateway.url,
    region: "us-east-1",
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
  });
}

it("the AWS SDK puts, gets, lists, races and uploads through two gateways on one store", async () => {
  const store = randomUUID();
  const [one, other] = [await openClient(store), await openClient(store)];
  await one.send(new s3.CreateBucketCommand({ Bucket }));
  for (const Key of ["a/1", "a/2", "b/1", "top"])
    await one.send(new s3.PutObjectCommand({ Bucket, Key, Body: `body of ${Key}` }));
  const read = async (Key: string, Range?: string): Promise<string | undefined> =>
    await (await other.send(new s3.GetObjectCommand({ Bucket, Key, Range }))).Body?.transformToString();
  expect(await read("a/2")).toBe("body of a/2");
  expect(await read("a/2", "bytes=0-3")).toBe("body");
  const listed = await other.send(new s3.ListObjectsV2Command({ Bucket, Delimiter: "/" }));
  expect(listed.CommonPrefixes?.map(({ Prefix }) => Prefix)).toEqual(["a/", "b/"]);
  expect(listed.Contents?.map(({ Key }) => Key)).toEqual(["top"]);

  const rivals = Array.from({ length: 8 }, (_, index) =>
    (index % 2 === 0 ? one : other).send(
      new s3.PutObjectCommand({ Bucket, Key: "once", Body: String(index), IfNoneMatch: "*" }),
    ),
  );
  const ends = await Promise.allSettled(rivals);
  expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);

  const { UploadId } = await one.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: "film" }));
  const bodies = [Buffer.alloc(5 * 1024 * 1024 + 3, "first "), Buffer.from("the last part")];
  const Parts: s3.CompletedPart[] = [];
  for (const [index, Body] of bodies.entries()) {
    const PartNumber = index + 1;
    const { ETag } = await other.send(new s3.UploadPartCommand({ Bucket, Key: "film", UploadId, PartNumber, Body }));
    Parts.push({ PartNumber, ETag });
  }
  await one.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key: "film", UploadId, MultipartUpload: { Parts } }));
  const film = await other.send(new s3.GetObjectCommand({ Bucket, Key: "film" }));
  expect(Buffer.concat(bodies).equals((await film.Body?.transformToByteArray()) ?? Buffer.alloc(0))).toBe(true);

  await one.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: "Enabled" } }));
  for (const Body of ["one", "two"]) await other.send(new s3.PutObjectCommand({ Bucket, Key: "cat", Body }));
  await one.send(new s3.DeleteObjectCommand({ Bucket, Key: "cat" }));
  const versions = await one.send(new s3.ListObjectVersionsCommand({ Bucket, Prefix: "cat" }));
  expect(versions.Versions?.map(({ Size }) => Size)).toEqual([3, 3]);
  expect(versions.DeleteMarkers).toHaveLength(1);
  for (const client of [one, other]) client.destroy();
});
