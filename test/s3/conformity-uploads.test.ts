// What S3 answers about uploads in parts, and about forms that a browser sends.
import { createHash, createHmac } from "node:crypto";
import { crc32 } from "node:zlib";
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, owner, sendSigned, startSite, type Site } from "./conformity-gateway.ts";

let site: Site;
let Bucket = "";
beforeAll(async () => {
  site = await startSite();
  Bucket = await site.newBucket();
});
afterAll(() => site.close());

const partBytes = Buffer.alloc(5 * 1024 ** 2, "a");
const Key = "film";

interface Begun {
  readonly UploadId: string | undefined;
  readonly Parts: s3.CompletedPart[];
}

async function begin(
  bodies: readonly (string | Buffer)[],
  more: Partial<s3.CreateMultipartUploadCommandInput> = {},
): Promise<Begun> {
  const created = await site.client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key, ...more }));
  const { UploadId } = created;
  const Parts: s3.CompletedPart[] = [];
  for (const [index, Body] of bodies.entries()) {
    const ChecksumAlgorithm = more.ChecksumAlgorithm;
    const part = { Bucket, Key, UploadId, PartNumber: index + 1, Body, ChecksumAlgorithm };
    const { $metadata: _, ...answer } = await site.client.send(new s3.UploadPartCommand(part));
    Parts.push({ ...answer, PartNumber: index + 1 });
  }
  return { UploadId, Parts };
}

function complete(
  { UploadId, Parts }: Begun,
  more: Partial<s3.CompleteMultipartUploadCommandInput> = {},
): Promise<s3.CompleteMultipartUploadCommandOutput> {
  const input = { Bucket, Key, UploadId, MultipartUpload: { Parts }, ...more };
  return site.client.send(new s3.CompleteMultipartUploadCommand(input));
}

const crcOf = (bytes: Buffer): string => {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum.toString("base64");
};

describe("a multipart upload", () => {
  it("becomes one object that is read whole, by range and by part number, even if it is completed twice", async () => {
    const begun = await begin([partBytes, "tail"], { ContentType: "a/b", Metadata: { k: "v" } });
    const { ETag } = await complete(begun);
    expect(ETag).toMatch(/-2"$/);
    expect((await complete(begun)).ETag).toBe(ETag);
    const second = await site.client.send(new s3.GetObjectCommand({ Bucket, Key, PartNumber: 2 }));
    expect(await second.Body?.transformToString()).toBe("tail");
    expect(second).toMatchObject({ PartsCount: 2, ETag, ContentType: "a/b", Metadata: { k: "v" } });
    const beyond = site.client.send(new s3.GetObjectCommand({ Bucket, Key, PartNumber: 3 }));
    expect(await failureOf(beyond)).toEqual(["InvalidPartNumber", 416]);
    const asked = { Bucket, Key, ObjectAttributes: ["ObjectParts", "ObjectSize", "ETag"] } as const;
    const found = await site.client.send(
      new s3.GetObjectAttributesCommand({ ...asked, ObjectAttributes: [...asked.ObjectAttributes] }),
    );
    expect(found).toMatchObject({ ObjectSize: partBytes.length + 4, ETag: ETag?.replaceAll('"', "") });
    expect(found.ObjectParts).toMatchObject({
      TotalPartsCount: 2,
      Parts: [{ PartNumber: 1 }, { PartNumber: 2, Size: 4 }],
    });
  });

  it("is refused with small, wrong, missing or unordered parts, and can be completed afterwards", async () => {
    const small = await begin(["x", "y"]);
    expect(await failureOf(complete(small))).toEqual(["EntityTooSmall", 400]);
    const [first, second] = small.Parts as [s3.CompletedPart, s3.CompletedPart];
    const wrong: readonly [s3.CompletedPart[], string][] = [
      [[second, first], "InvalidPartOrder"],
      [[{ ...first, PartNumber: 9 }], "InvalidPart"],
      [[{ ...first, ETag: `"${"f".repeat(32)}"` }], "InvalidPart"],
      [[], "MalformedXML"],
    ];
    for (const [Parts, code] of wrong) expect(await failureOf(complete({ ...small, Parts }))).toEqual([code, 400]);
    await complete({ ...small, Parts: [second] });
    const part = (PartNumber: number): Promise<unknown> =>
      site.client.send(new s3.UploadPartCommand({ Bucket, Key, UploadId: small.UploadId, PartNumber, Body: "z" }));
    expect(await failureOf(part(1))).toEqual(["NoSuchUpload", 404]);
    const { UploadId } = await begin([]);
    for (const partNumber of ["0", "10001", "x"]) {
      const query = { uploadId: UploadId ?? "", partNumber };
      const answer = await sendSigned(site.port, { method: "PUT", path: `/${Bucket}/${Key}`, query, body: "z" });
      expect(answer).toMatchObject({ status: 400, code: "InvalidArgument" });
    }
  });

  it("has a composite checksum, or one of the whole object if the algorithm allows it", async () => {
    const composite = await begin([partBytes, "tail"], { ChecksumAlgorithm: "SHA256" });
    const hashes = [partBytes, Buffer.from("tail")].map((bytes) => createHash("sha256").update(bytes).digest());
    const value = `${createHash("sha256").update(Buffer.concat(hashes)).digest("base64")}-2`;
    expect(await complete(composite)).toMatchObject({ ChecksumSHA256: value, ChecksumType: "COMPOSITE" });
    const full = await begin([partBytes, "tail"], { ChecksumAlgorithm: "CRC32", ChecksumType: "FULL_OBJECT" });
    const right = crcOf(Buffer.concat([partBytes, Buffer.from("tail")]));
    expect(await failureOf(complete(full, { ChecksumCRC32: "AAAAAA==" }))).toEqual(["BadDigest", 400]);
    expect(await complete(full, { ChecksumCRC32: right })).toMatchObject({ ChecksumCRC32: right });
    const head = await site.client.send(new s3.HeadObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
    expect(head).toMatchObject({ ChecksumCRC32: right, ChecksumType: "FULL_OBJECT" });
    const never = site.client.send(
      new s3.CreateMultipartUploadCommand({ Bucket, Key, ChecksumAlgorithm: "SHA1", ChecksumType: "FULL_OBJECT" }),
    );
    expect(await failureOf(never)).toEqual(["InvalidRequest", 400]);
  });

  it("returns the checksum of a part with the part, and that of the object with the object", async () => {
    const bodies = [partBytes, Buffer.from("tail")];
    const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("base64");
    const read = async (PartNumber: number): Promise<unknown[]> => {
      const input = { Bucket, Key, PartNumber, ChecksumMode: "ENABLED" } as const;
      const head = await site.client.send(new s3.HeadObjectCommand(input));
      const got = await site.client.send(new s3.GetObjectCommand(input));
      // The SDK compares the bytes with the checksum.
      expect((await got.Body?.transformToByteArray())?.length).toBe(bodies[PartNumber - 1]?.length);
      return [head, got];
    };
    await complete(await begin(bodies, { ChecksumAlgorithm: "SHA256" }));
    for (const [index, body] of bodies.entries())
      for (const answer of await read(index + 1))
        expect(answer).toMatchObject({ ChecksumSHA256: sha256(body), ChecksumType: "COMPOSITE", PartsCount: 2 });
    await complete(await begin(bodies, { ChecksumAlgorithm: "CRC32", ChecksumType: "FULL_OBJECT" }));
    for (const answer of await read(2))
      expect(answer).toMatchObject({ ChecksumCRC32: crcOf(bodies[1]!), ChecksumType: "FULL_OBJECT" });
    const tail = bodies.slice(1);
    await complete(await begin(tail, { ChecksumAlgorithm: "SHA256" }));
    const alone = await site.client.send(
      new s3.HeadObjectCommand({ Bucket, Key, PartNumber: 1, ChecksumMode: "ENABLED" }),
    );
    expect(alone).toMatchObject({ ChecksumSHA256: sha256(tail[0]!), PartsCount: 1 });
    await complete(await begin(bodies));
    expect(await read(1)).toMatchObject([{ PartsCount: 2 }, { PartsCount: 2 }]);
    await complete(await begin([partBytes, ""]));
    const empty = await site.client.send(new s3.GetObjectCommand({ Bucket, Key, PartNumber: 2 }));
    expect([await empty.Body?.transformToString(), empty.ContentLength]).toEqual(["", 0]);
  });

  it("copies parts from ranges of existing objects", async () => {
    await site.client.send(new s3.PutObjectCommand({ Bucket, Key: "source", Body: "0123456789" }));
    const { UploadId } = await begin([]);
    const copy = (CopySourceRange?: string): Promise<s3.UploadPartCopyCommandOutput> =>
      site.client.send(
        new s3.UploadPartCopyCommand({
          Bucket,
          Key,
          UploadId,
          PartNumber: 1,
          CopySource: `${Bucket}/source`,
          CopySourceRange,
        }),
      );
    for (const range of ["0-2", "bytes=0", "bytes=0-bar", "bytes=-5", "bytes=0-2,3-5"])
      expect(await failureOf(copy(range))).toEqual(["InvalidArgument", 400]);
    expect(await failureOf(copy("bytes=0-21"))).toEqual(["InvalidRange", 416]);
    const { CopyPartResult } = await copy("bytes=2-4");
    await complete({ UploadId, Parts: [{ PartNumber: 1, ETag: CopyPartResult?.ETag }] });
    const got = await site.client.send(new s3.GetObjectCommand({ Bucket, Key }));
    expect(await got.Body?.transformToString()).toBe("234");
  });

  it("is listed while in progress, in pages, with prefixes and delimiters", async () => {
    Bucket = await site.newBucket();
    for (const key of ["a/1", "a/2", "b", "c/x", "d"]) await begin([], { Key: key });
    const seen: (string | undefined)[] = [];
    let markers: Partial<s3.ListMultipartUploadsCommandInput> = {};
    for (;;) {
      const input = { Bucket, Delimiter: "/", MaxUploads: 1, ...markers };
      const page = await site.client.send(new s3.ListMultipartUploadsCommand(input));
      seen.push(...(page.Uploads ?? []).map((upload) => upload.Key));
      seen.push(...(page.CommonPrefixes ?? []).map((common) => common.Prefix));
      if (page.IsTruncated !== true) break;
      markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    }
    expect(seen).toEqual(["a/", "b", "c/", "d"]);
    const behind = await site.client.send(new s3.ListMultipartUploadsCommand({ Bucket, KeyMarker: "b" }));
    expect(behind.Uploads?.map((upload) => upload.Key)).toEqual(["c/x", "d"]);
    const { UploadId } = await begin(["1", "2", "3"]);
    const page = await site.client.send(new s3.ListPartsCommand({ Bucket, Key, UploadId, MaxParts: 2 }));
    expect(page).toMatchObject({ IsTruncated: true, NextPartNumberMarker: "2" });
    await site.client.send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
    const again = site.client.send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
    expect(await failureOf(again)).toEqual(["NoSuchUpload", 404]);
  });

  it("is listed with the account that began it, which will own it unless the bucket enforces its owner", async () => {
    const open = await site.newBucket({ ACL: "public-read-write" });
    const by = { shop: site.shop, bank: site.bank, holdfast: site.client } as const;
    const listed = async (): Promise<(string | undefined)[][]> =>
      ((await site.client.send(new s3.ListMultipartUploadsCommand({ Bucket: open }))).Uploads ?? []).map(
        ({ Initiator, Owner, StorageClass }) => [Initiator?.ID, Initiator?.DisplayName, Owner?.ID, StorageClass],
      );
    for (const [account, client] of Object.entries(by)) {
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket: open, Key: account }));
      const listing = new s3.ListPartsCommand({ Bucket: open, Key: account, UploadId });
      expect(await site.client.send(listing)).toMatchObject({
        Initiator: { ID: account, DisplayName: account },
        Owner: { ID: account, DisplayName: account },
        StorageClass: "STANDARD",
      });
    }
    const accounts = Object.keys(by).sort();
    expect(await listed()).toEqual(accounts.map((each) => [each, each, each, "STANDARD"]));
    await site.client.send(new s3.PutBucketAclCommand({ Bucket: open, ACL: "private" }));
    const Rules = [{ ObjectOwnership: "BucketOwnerEnforced" }] as const;
    await site.client.send(
      new s3.PutBucketOwnershipControlsCommand({ Bucket: open, OwnershipControls: { Rules: [...Rules] } }),
    );
    expect(await listed()).toEqual(accounts.map((each) => [each, each, "holdfast", "STANDARD"]));
  });
});

type Fields = Readonly<Record<string, string>>;

/** As a browser sends it: the file is the last part. */
async function post(bucket: string, fields: Fields, file = "bar", fileName = "foo.txt"): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", new Blob([file]), fileName);
  return await fetch(`${site.url}/${bucket}`, { method: "POST", body: form, redirect: "manual" });
}

describe("a form", () => {
  let target = "";
  beforeAll(async () => {
    target = await site.newBucket();
  });
  const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();
  const conditions = (): unknown[] => [
    { bucket: target },
    ["starts-with", "$KEY", "foo"],
    { acl: "private" },
    ["content-length-range", 1, 1024],
  ];
  const encode = (policy: unknown): string => Buffer.from(JSON.stringify(policy)).toString("base64");

  /** Signed as it was before version 4. */
  function oldForm(policy: unknown, more: Fields = {}): Fields {
    const text = encode(policy);
    const signature = createHmac("sha1", owner.secretAccessKey).update(text).digest("base64");
    return { key: "foo.txt", AWSAccessKeyId: owner.accessKeyId, acl: "private", signature, policy: text, ...more };
  }

  function newForm(list: readonly unknown[], more: Fields = {}): Fields {
    const day = new Date().toISOString().slice(0, 10).replaceAll("-", "");
    const credential = `${owner.accessKeyId}/${day}/us-east-1/s3/aws4_request`;
    const own = { "x-amz-credential": credential, "x-amz-algorithm": "AWS4-HMAC-SHA256" };
    const policy = encode({ expiration: inAnHour(), conditions: [...list, own] });
    const steps = [day, "us-east-1", "s3", "aws4_request"];
    const key = steps.reduce<string | Buffer>(
      (above, step) => createHmac("sha256", above).update(step).digest(),
      `AWS4${owner.secretAccessKey}`,
    );
    const signature = createHmac("sha256", key).update(policy).digest("hex");
    return { key: "foo.txt", acl: "private", ...own, policy, "x-amz-signature": signature, ...more };
  }

  it("uploads a file under a policy with a signature of version 4 or 2", async () => {
    for (const fields of [newForm(conditions()), oldForm({ expiration: inAnHour(), conditions: conditions() })]) {
      const answer = await post(target, { ...fields, key: "${filename}", "x-ignore-this": "1" });
      expect(answer.status).toBe(204);
      const got = await site.client.send(new s3.GetObjectCommand({ Bucket: target, Key: "foo.txt" }));
      expect(await got.Body?.transformToString()).toBe("bar");
    }
    const created = await post(
      target,
      newForm([...conditions(), ["eq", "$success_action_status", "201"]], { success_action_status: "201" }),
    );
    expect([created.status, await created.text()]).toEqual([201, expect.stringContaining("<Key>foo.txt</Key>")]);
    const where = "http://127.0.0.1/thanks";
    const redirected = await post(
      target,
      newForm([...conditions(), { success_action_redirect: where }], { success_action_redirect: where }),
    );
    expect(redirected.status).toBe(303);
    expect(redirected.headers.get("location")).toMatch(/thanks\?bucket=.*&key=foo.txt&etag=%22[0-9a-f]{32}%22$/);
  });

  const good = (): { expiration: string; conditions: unknown[] } => ({
    expiration: inAnHour(),
    conditions: conditions(),
  });
  const refused: Readonly<Record<string, readonly [number, () => Fields]>> = {
    "a wrong signature": [403, () => ({ ...oldForm(good()), signature: "AAAA" })],
    "an unknown key": [403, () => ({ ...oldForm(good()), AWSAccessKeyId: "NONE" })],
    "no signature": [
      400,
      () => Object.fromEntries(Object.entries(oldForm(good())).filter(([name]) => name !== "signature")),
    ],
    "no key": [400, () => ({ ...oldForm(good()), key: "" })],
    "an old policy": [403, () => oldForm({ ...good(), expiration: "2020-01-01T00:00:00Z" })],
    "a time that is none": [400, () => oldForm({ ...good(), expiration: "2090-01-01 00:00:00" })],
    "no time": [400, () => oldForm({ conditions: conditions() })],
    "no conditions": [400, () => oldForm({ expiration: inAnHour() })],
    "an empty condition": [400, () => oldForm({ ...good(), conditions: [{}] })],
    "a bucket that is not covered": [403, () => oldForm({ ...good(), conditions: conditions().slice(1) })],
    "a field that is not covered": [403, () => oldForm(good(), { "x-amz-meta-a": "1" })],
    "a condition that does not hold": [
      403,
      () =>
        oldForm({ ...good(), conditions: [...conditions(), ["eq", "$x-amz-meta-a", "2"]] }, { "x-amz-meta-a": "1" }),
    ],
    "a file that is too large": [
      400,
      () => oldForm({ ...good(), conditions: [...conditions(), ["content-length-range", 0, 1]] }),
    ],
    "a file that is too small": [
      400,
      () => oldForm({ ...good(), conditions: [...conditions(), ["content-length-range", 500, 1000]] }),
    ],
    "half a range": [400, () => oldForm({ ...good(), conditions: [["content-length-range", 0]] })],
    "a range below zero": [400, () => oldForm({ ...good(), conditions: [["content-length-range", -1, 0]] })],
  };
  it.each(Object.entries(refused))("is refused with %s, and nothing is stored", async (_, [status, fields]) => {
    const bucket = target;
    target = await site.newBucket();
    const answer = await post(target, fields());
    expect(answer.status).toBe(status);
    const { KeyCount } = await site.client.send(new s3.ListObjectsV2Command({ Bucket: target }));
    expect(KeyCount).toBe(0);
    target = bucket;
  });

  it("without a policy is anonymous, and uploads only if everybody may write", async () => {
    expect((await post(target, { key: "x" })).status).toBe(403);
    const open = await site.newBucket({ ACL: "public-read-write" });
    const tagging = "<Tagging><TagSet><Tag><Key>0</Key><Value>1</Value></Tag></TagSet></Tagging>";
    expect((await post(open, { key: "x", acl: "public-read", "Content-Type": "text/plain", tagging })).status).toBe(
      204,
    );
    const head = await site.client.send(new s3.HeadObjectCommand({ Bucket: open, Key: "x" }));
    expect(head.ContentType).toBe("text/plain");
  });
});
