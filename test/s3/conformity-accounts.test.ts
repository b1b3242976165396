// What S3 answers about buckets of more than one account: who has which, and what is granted to others.
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, send, startSite, type Site } from "./conformity-gateway.ts";

let site: Site;
beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site.close());

let count = 0;
async function bucketOf(client: s3.S3Client, more: Partial<s3.CreateBucketCommandInput> = {}): Promise<string> {
  const Bucket = `account-${++count}`;
  await client.send(new s3.CreateBucketCommand({ Bucket, ...more }));
  return Bucket;
}
const put = (client: s3.S3Client, Bucket: string, Key: string, more: Partial<s3.PutObjectCommandInput> = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body: "x", ...more }));
const get = (client: s3.S3Client, Bucket: string, Key: string): Promise<unknown> =>
  client.send(new s3.GetObjectCommand({ Bucket, Key }));
const list = (client: s3.S3Client, Bucket: string): Promise<s3.ListObjectsCommandOutput> =>
  client.send(new s3.ListObjectsCommand({ Bucket }));
const denied = ["AccessDenied", 403];
const isDenied = async (call: Promise<unknown>): Promise<boolean> =>
  await call.then(
    () => false,
    (error: unknown) => (error as s3.S3ServiceException).$metadata.httpStatusCode === 403,
  );

describe("an account", () => {
  it("owns the buckets that it created; the operator owns all", async () => {
    const [own, others] = [await bucketOf(site.shop), await bucketOf(site.bank)];
    const namesOf = async (client: s3.S3Client): Promise<(string | undefined)[]> =>
      ((await client.send(new s3.ListBucketsCommand())).Buckets ?? []).map(({ Name }) => Name);
    expect(await namesOf(site.shop)).toContain(own);
    expect(await namesOf(site.shop)).not.toContain(others);
    expect(await namesOf(site.client)).toEqual(expect.arrayContaining([own, others]));
    const make = (client: s3.S3Client, Bucket: string): Promise<unknown> =>
      client.send(new s3.CreateBucketCommand({ Bucket }));
    await make(site.shop, own);
    for (const client of [site.shop, site.client])
      expect(await failureOf(make(client, others))).toEqual(["BucketAlreadyExists", 409]);
    await put(site.shop, own, "k");
    await get(site.client, own, "k");
    expect((await list(site.shop, own)).Contents?.[0]?.Owner?.ID).toBe("shop");
    expect((await site.shop.send(new s3.GetBucketAclCommand({ Bucket: own }))).Owner?.ID).toBe("shop");
    const expecting = (ExpectedBucketOwner: string): Promise<unknown> =>
      site.shop.send(new s3.HeadBucketCommand({ Bucket: own, ExpectedBucketOwner }));
    await expecting("shop");
    expect(await isDenied(expecting("bank"))).toBe(true);
  });

  it("is refused every operation on buckets of others", async () => {
    const Bucket = await bucketOf(site.shop);
    await put(site.shop, Bucket, "k");
    const own = await bucketOf(site.bank);
    const calls: Parameters<s3.S3Client["send"]>[0][] = [
      new s3.GetObjectCommand({ Bucket, Key: "k" }),
      new s3.HeadObjectCommand({ Bucket, Key: "k" }),
      new s3.PutObjectCommand({ Bucket, Key: "k", Body: "y" }),
      new s3.DeleteObjectCommand({ Bucket, Key: "k" }),
      new s3.CopyObjectCommand({ Bucket: own, Key: "k", CopySource: `${Bucket}/k` }),
      new s3.CreateMultipartUploadCommand({ Bucket, Key: "k" }),
      new s3.ListObjectsV2Command({ Bucket }),
      new s3.HeadBucketCommand({ Bucket }),
      new s3.GetBucketAclCommand({ Bucket }),
      new s3.PutBucketAclCommand({ Bucket, ACL: "public-read" }),
      new s3.GetBucketPolicyCommand({ Bucket }),
      new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: "Enabled" } }),
      new s3.DeleteBucketCommand({ Bucket }),
    ] as never[];
    for (const call of calls)
      expect([call.constructor.name, await isDenied(site.bank.send(call))]).toEqual([call.constructor.name, true]);
    const Delete = { Objects: [{ Key: "k" }] };
    const { Errors } = await site.bank.send(new s3.DeleteObjectsCommand({ Bucket, Delete }));
    expect(Errors?.map(({ Code }) => Code)).toEqual(["AccessDenied"]);
    expect(await failureOf(get(site.bank, "account-none", "k"))).toEqual(["NoSuchBucket", 404]);
    await get(site.shop, Bucket, "k");
  });

  const rights: readonly [s3.Permission, readonly boolean[]][] = [
    ["READ", [true, false, false, false]],
    ["WRITE", [false, true, false, false]],
    ["READ_ACP", [false, false, true, false]],
    ["WRITE_ACP", [false, false, false, true]],
    ["FULL_CONTROL", [true, true, true, true]],
  ];
  it.each(rights)("to which an ACL grants %s may do that and nothing else", async (Permission, expected) => {
    const Bucket = await bucketOf(site.shop);
    const granted = (ID: string, permission: s3.Permission): s3.Grant => ({
      Grantee: { ID, Type: "CanonicalUser" },
      Permission: permission,
    });
    const AccessControlPolicy = {
      Owner: { ID: "shop" },
      Grants: [granted("shop", "FULL_CONTROL"), granted("bank", Permission)],
    };
    await site.shop.send(new s3.PutBucketAclCommand({ Bucket, AccessControlPolicy }));
    const tries = [
      () => list(site.bank, Bucket),
      () => put(site.bank, Bucket, "new"),
      () => site.bank.send(new s3.GetBucketAclCommand({ Bucket })),
      () => site.bank.send(new s3.PutBucketAclCommand({ Bucket, ACL: "private" })),
    ];
    const found: boolean[] = [];
    for (const each of tries) found.push(!(await isDenied(each())));
    expect(found).toEqual(expected);
    const stranger = { ...AccessControlPolicy, Grants: [granted("nobody-known", Permission)] };
    const unknown = site.shop.send(new s3.PutBucketAclCommand({ Bucket, AccessControlPolicy: stranger }));
    expect(await failureOf(unknown)).toEqual(["InvalidArgument", 400]);
  });

  it("reads and writes what an ACL opens to everybody or every key pair, and owns what it wrote", async () => {
    const Bucket = await bucketOf(site.shop, { ACL: "public-read-write" });
    await put(site.shop, Bucket, "closed");
    await put(site.shop, Bucket, "open", { ACL: "authenticated-read" });
    expect(await failureOf(get(site.bank, Bucket, "closed"))).toEqual(denied);
    await get(site.bank, Bucket, "open");
    expect((await send(site.port, { path: `/${Bucket}/open` })).status).toBe(403);
    await put(site.bank, Bucket, "new", { ACL: "bucket-owner-read" });
    await get(site.bank, Bucket, "new");
    const { Grants } = await site.bank.send(new s3.GetObjectAclCommand({ Bucket, Key: "new" }));
    expect(Grants?.map(({ Grantee, Permission }) => [Grantee?.ID, Permission])).toEqual([
      ["bank", "FULL_CONTROL"],
      ["shop", "READ"],
    ]);
    const block = { IgnorePublicAcls: true };
    await site.shop.send(new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: block }));
    expect(await failureOf(get(site.bank, Bucket, "open"))).toEqual(denied);
    await get(site.bank, Bucket, "new");
  });

  it("may do what a policy allows it by name, and nothing that the policy denies", async () => {
    const Bucket = await bucketOf(site.shop);
    await put(site.shop, Bucket, "k");
    const Resource = [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`];
    const policy = (...statements: object[]): Promise<unknown> => {
      const Statement = statements.map((each) => ({ Effect: "Allow", Resource, ...each }));
      const Policy = JSON.stringify({ Version: "2012-10-17", Statement });
      return site.shop.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
    };
    const bank = { AWS: "arn:aws:iam::bank:root" };
    await policy({ Principal: bank, Action: "s3:GetObject" });
    await get(site.bank, Bucket, "k");
    expect((await send(site.port, { path: `/${Bucket}/k` })).status).toBe(403);
    expect(await failureOf(list(site.bank, Bucket))).toEqual(denied);
    await policy(
      { Principal: { AWS: "*" }, Action: "s3:*" },
      { Effect: "Deny", Principal: bank, Action: "s3:GetObject" },
    );
    expect(await failureOf(get(site.bank, Bucket, "k"))).toEqual(denied);
    await list(site.bank, Bucket);
  });

  it("may do what a policy allows under conditions that hold: tags, headers and prefixes", async () => {
    const Bucket = await bucketOf(site.shop);
    await put(site.shop, Bucket, "open", { Tagging: "security=public" });
    await put(site.shop, Bucket, "closed", { Tagging: "security=private" });
    const Resource = [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`];
    const policy = (...statements: object[]): Promise<unknown> => {
      const Statement = statements.map((each) => ({ Effect: "Allow", Principal: "*", Resource, ...each }));
      return site.shop.send(new s3.PutBucketPolicyCommand({ Bucket, Policy: JSON.stringify({ Statement }) }));
    };
    const tagged = { StringEquals: { "s3:ExistingObjectTag/security": "public" } };
    await policy({ Action: "s3:GetObject", Condition: tagged });
    await get(site.bank, Bucket, "open");
    for (const key of ["closed", "none"]) expect(await failureOf(get(site.bank, Bucket, key))).toEqual(denied);
    await policy({ Action: "s3:ListBucket", Condition: { StringLike: { "s3:prefix": "a/*" } } });
    const listing = (Prefix?: string): Promise<unknown> =>
      site.bank.send(new s3.ListObjectsV2Command({ Bucket, Prefix }));
    await listing("a/b");
    expect(await failureOf(listing())).toEqual(denied);
    const isPublic = { StringLike: { "s3:x-amz-acl": "public*" } };
    await policy({ Action: "s3:PutObject" }, { Effect: "Deny", Action: "s3:PutObject", Condition: isPublic });
    await put(site.bank, Bucket, "new");
    expect(await failureOf(put(site.bank, Bucket, "new", { ACL: "public-read" }))).toEqual(denied);
    const from = { StringLike: { "s3:x-amz-copy-source": `${Bucket}/open*` } };
    await policy(
      { Action: ["s3:GetObject", "s3:GetObjectTagging"] },
      { Action: ["s3:PutObject", "s3:PutObjectTagging"], Condition: from },
    );
    const copy = (key: string): Promise<unknown> =>
      site.bank.send(new s3.CopyObjectCommand({ Bucket, Key: "copy", CopySource: `${Bucket}/${key}` }));
    await copy("open");
    expect(await failureOf(copy("closed"))).toEqual(denied);
  });

  it("cannot bypass governance in the bucket of another account, even if it may delete", async () => {
    const Bucket = await bucketOf(site.shop, { ObjectLockEnabledForBucket: true });
    const ObjectLockRetainUntilDate = new Date(Date.now() + 3_600_000);
    const { VersionId } = await put(site.shop, Bucket, "k", {
      ObjectLockMode: "GOVERNANCE",
      ObjectLockRetainUntilDate,
    });
    const Resource = [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`];
    const Policy = JSON.stringify({ Statement: { Effect: "Allow", Principal: "*", Action: "s3:*", Resource } });
    await site.shop.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
    const remove = (client: s3.S3Client): Promise<unknown> =>
      client.send(new s3.DeleteObjectCommand({ Bucket, Key: "k", VersionId, BypassGovernanceRetention: true }));
    expect(await failureOf(remove(site.bank))).toEqual(denied);
    await remove(site.shop);
  });
});

it("an unsigned request does not learn whether a bucket or a key exists", async () => {
  const Bucket = await bucketOf(site.shop);
  await put(site.shop, Bucket, "k");
  expect(await send(site.port, { path: "/account-none/k" })).toMatchObject({ status: 403, code: "AccessDenied" });
  for (const path of [`/${Bucket}/k`, `/${Bucket}/none`, `/${Bucket}`])
    expect(await send(site.port, { path })).toMatchObject({ status: 403, code: "AccessDenied" });
  expect(await send(site.port, { method: "PUT", path: "/account-none" })).toMatchObject({ status: 403 });
});
